"""Read exit codes that a shell line prints itself, such as `tool; echo "exit: $?"`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from evaluators.tool_use.shell import Segment, ShellLine
from evaluators.tool_use.shell_syntax import (
    CaseStatement,
    Chain,
    Expanded,
    If,
    Leaf,
    Loop,
    Node,
    Pipeline,
    Quiet,
    Repeated,
    Statement,
    Statements,
)

_EXPANSION = re.compile(
    r"\$\{PIPESTATUS\[(?P<part>\d|[@*])\]\}|\$\{?\?\}?|\$\{?(?P<name>[A-Za-z_]\w*)\}?|\$\([^)]*\)|`[^`]*`|\$\d"
)
_FORMAT = re.compile(r"%[-\d.]*[sdi]")
_PRINTING = frozenset(["echo", "printf"])


class Stated(Struct, frozen=True):
    """What the output states of a line's parts, by the identity of their nodes."""

    statements: dict[int, int] = field(default_factory=dict)
    pipelines: dict[int, dict[int, int]] = field(default_factory=dict)
    """The statuses of a pipeline's parts by their place."""
    chains: dict[tuple[int, int], int] = field(default_factory=dict)
    """The statuses of a chain's commands by their place."""
    printed: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Whether a command of a chain that prints a status has printed it."""


def stated_statuses(line: ShellLine, output: str) -> Stated:
    """Return the exit codes that a line's own `echo` and `printf` commands print."""
    stated = Stated()
    if output and any(each.words[0] in _PRINTING and "$" in each.line for each in line.segments):
        _Reader(line, output, stated).statements(line.root)
    return stated


def echoed_line(segment: Segment) -> str:
    """Return the one line that an `echo` prints whatever happens; empty if it depends on something or is hidden."""
    if segment.hides_output or segment.words[0] not in _PRINTING:
        return ""
    text = _template(segment).strip()
    return "" if "$" in text or "`" in text or "\n" in text else text


def _template(segment: Segment) -> str:
    """Return what `echo` or `printf` prints, with expansions as written."""
    words = segment.words
    if words[0] == "echo":
        at = 1
        while at < len(words) and re.fullmatch(r"-[neE]+", words[at]):
            at += 1
        return " ".join(words[at:]).replace("\\n", "\n")
    values = iter(words[2:])
    text = _FORMAT.sub(lambda _: next(values, ""), words[1] if len(words) > 1 else "")
    return text.replace("\\n", "\n")


class _Reader:
    """Pairs what is printed with the lines of the output."""

    def __init__(self, line: ShellLine, output: str, stated: Stated) -> None:
        self.segments = line.segments
        self.lines = [each.rstrip("\r") for each in output.split("\n")]
        self.found = stated
        self.kept: dict[str, tuple[Statement, str]] = {}
        """The statement whose status a variable has, and the part of its pipeline."""
        self.uses: dict[str, int] = {}
        """How often each pattern is printed; -1 where the number is unknown."""
        self.seen: dict[str, int] = {}
        for leaf, is_repeated in _leaves(line.root, is_repeated=False):
            if (pattern := self.pattern(leaf)) is not None:
                is_unknown = is_repeated or self.uses.get(pattern) == -1
                self.uses[pattern] = -1 if is_unknown else self.uses.get(pattern, 0) + 1

    def statements(self, block: Statements) -> None:
        before: Statement | None = None
        for statement in block.items:
            match statement.node:
                case Leaf():
                    self.leaf(statement.node, before)
                case Chain():
                    self.chain(statement.node)
                case Statements():
                    self.statements(statement.node)
                case Expanded() if isinstance(statement.node.node, Statements):
                    self.statements(statement.node.node)
                case Quiet() if statement.node.status_name and before is not None:
                    self.kept[statement.node.status_name] = before, statement.node.part
            if not statement.in_background:
                before = statement

    def leaf(self, leaf: Leaf, before: Statement | None) -> None:
        for expansion, text in self.printed(leaf):
            part, name = expansion["part"], expansion["name"]
            if part:
                self.state(before, part, text)
            elif name:
                statement, pipe_part = self.kept.get(name, (None, ""))
                self.state(statement, pipe_part, text)
            elif "?" in expansion.group():
                self.state(before, "", text)

    def state(self, statement: Statement | None, part: str, text: str) -> None:
        codes = text.split()
        if statement is None or not codes or not all(code.isdigit() and len(code) < 4 for code in codes):
            return
        node = statement.node
        if part and isinstance(node, Pipeline):
            parts = self.found.pipelines.setdefault(id(node), {})
            if part in "@*" and len(codes) == len(node.items):
                parts.update(enumerate(map(int, codes)))
            elif part.isdigit():
                parts[int(part)] = int(codes[0])
        elif part in ("", "0") and len(codes) == 1:
            self.found.statements[id(statement)] = int(codes[0])

    def chain(self, node: Chain) -> None:
        for at, command in enumerate(node.items):
            if (
                not isinstance(command, Leaf)
                or self.pattern(command) is None
                or "$?" not in self.segments[command.segment].line
            ):
                continue
            said = [text for expansion, text in self.printed(command) if "?" in expansion.group()]
            pattern = self.pattern(command) or ""
            if self.uses[pattern] == 1:
                self.found.printed[id(node), at] = bool(said)
            if at and said and said[0].isdigit():
                self.found.chains[id(node), at - 1] = int(said[0])

    def printed(self, leaf: Leaf) -> list[tuple[re.Match[str], str]]:
        """Return what a print's expansions are in the output; nothing where it can't be told."""
        pattern = self.pattern(leaf)
        if pattern is None or self.uses[pattern] < 0:
            return []
        matches = [found for line in self.lines if (found := re.fullmatch(pattern, line))]
        nth = self.seen.get(pattern, 0)
        self.seen[pattern] = nth + 1
        if leaf.segment == len(self.segments) - 1 and self.lines and matches:
            # What the last command prints is the last line, whatever else looks like it.
            last = next((line for line in reversed(self.lines) if line.strip()), "")
            nth = len(matches) - 1 if re.fullmatch(pattern, last) else -1
        elif len(matches) != self.uses[pattern]:
            nth = -1
        if nth < 0:
            return []
        return list(zip(_EXPANSION.finditer(self.shown_line(leaf)), matches[nth].groups(), strict=True))

    def shown_line(self, leaf: Leaf) -> str:
        """Return the line of a print that has expansions; empty if none has, or several have."""
        segment = self.segments[leaf.segment]
        if segment.words[0] not in _PRINTING or segment.hides_output:
            return ""
        lines = [line for line in _template(segment).split("\n") if _EXPANSION.search(line)]
        return lines[0] if len(lines) == 1 else ""

    def pattern(self, leaf: Leaf) -> str | None:
        """Return a regular expression for the line of a print that has expansions, None without one."""
        line = self.shown_line(leaf)
        pattern, at = "", 0
        for expansion in _EXPANSION.finditer(line):
            pattern += re.escape(line[at : expansion.start()])
            if expansion["part"]:
                pattern += r"((?:\d{1,3} ?)+)"
            else:
                pattern += r"(\d{1,3})" if "?" in expansion.group() else "([^\n]{0,400})"
            at = expansion.end()
        return pattern + re.escape(line[at:]) if line else None


def _leaves(node: Node, *, is_repeated: bool) -> Iterator[tuple[Leaf, bool]]:
    match node:
        case Leaf():
            yield node, is_repeated
        case Repeated():
            yield from _leaves(node.node, is_repeated=True)
        case Expanded():
            yield from _leaves(node.node, is_repeated=is_repeated)
        case Statements():
            for statement in node.items:
                yield from _leaves(statement.node, is_repeated=is_repeated)
        case Pipeline() | Chain():
            for item in node.items:
                yield from _leaves(item, is_repeated=is_repeated)
        case Loop():
            yield from _leaves(node.body, is_repeated=True)
        case If():
            for _, body in node.branches:
                yield from _leaves(body, is_repeated=is_repeated)
        case CaseStatement():
            for branch in node.branches:
                yield from _leaves(branch, is_repeated=is_repeated)
