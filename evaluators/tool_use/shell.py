"""Find the commands of a shell line.

Follows llm-tool-test evaluation, Layer 1 (Command Identification): opens launchers such as `bash -lc '…'` or `npx`,
follows variables, aliases and functions, removes prompt signs and colours, and cuts a program's path to its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evaluators.tool_use.launchers import SHELLS, is_assignment, open_launcher, program_name
from evaluators.tool_use.powershell import POWERSHELLS, parse_powershell
from evaluators.tool_use.shell_syntax import (
    CaseStatement,
    Chain,
    Expanded,
    Function,
    If,
    Leaf,
    Loop,
    Node,
    Pipeline,
    Quiet,
    Repeated,
    Simple,
    Statement,
    Statements,
    hides_errors,
    hides_output,
    parse,
)
from evaluators.tool_use.shell_words import LONGEST_VALUE, Word, split_words

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.-]++@[\w.-][^\n$%#>]*+[$%#>]|PS [A-Z]:[^\n>]*>|[$%>❯➜])[ \t]+"
)
_DEEPEST = 5
"""The deepest nesting of scripts in scripts that is opened."""
_MOST_STAGES = 12
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ARGUMENT = re.compile(r"\$(?:\{(\d|[@*#])\}|(\d|[@*#]))")
_STATUS = re.compile(r"(\w+)=(?:\$\?|\$\{\?\}|\$\{PIPESTATUS\[(\d)\]\})")
_LOOKED_UP = re.compile(r"(?:command\s+-v|which|type\s+-P)\s+([\w./-]+)")


class LaunchedCommand(Struct, frozen=True):
    """A command as one launcher sees it: `npx t list` and, behind it, `t list`."""

    words: tuple[str, ...]
    text: str
    """The normalized text for patterns, with empty substitutions."""
    line: str
    """The normalized line: single spaces, canonical quotes, the program without its path."""
    path: str = ""
    """The program as written, if it has a path."""
    is_script: bool = False
    """Whether an interpreter runs it, so that its first word is a script or a module."""
    quoted: tuple[tuple[int, int], ...] = ()
    """Where in `text` arguments are that were quoted."""


class Segment(Struct, frozen=True):
    """One simple command."""

    stages: tuple[LaunchedCommand, ...]
    """From the line as typed to the command behind all launchers."""
    launchers: tuple[str, ...] = ()
    """The opened launchers, the outermost first."""
    hides_output: bool = False
    """Whether its standard output goes elsewhere."""
    hides_errors: bool = False
    """Whether its standard error goes elsewhere."""

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words behind all launchers."""
        return self.stages[-1].words

    @property
    def line(self) -> str:
        """Return the normalized line behind all launchers."""
        return self.stages[-1].line


class Definitions(Struct, frozen=True, cache_hash=True):
    """What a session has defined, as words by name."""

    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Variables and aliases."""
    functions: tuple[tuple[str, Node], ...] = ()


class ShellLine(Struct, frozen=True):
    """A shell line that was read."""

    segments: tuple[Segment, ...]
    root: Statements
    """The line's commands as a tree; its leaves are the segments."""
    definitions: Definitions = Definitions()
    """What is defined after it."""


def without_ansi(text: str) -> str:
    """Return the text without terminal control sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def read_line(
    line: str,
    definitions: Definitions = Definitions(),  # noqa: B008 immutable
    *,
    is_powershell: bool = False,
) -> ShellLine:
    """Return the commands of a shell line. Never raises; prose becomes one segment."""
    reader = _Reader(definitions)
    root = reader.script(PROMPT.sub("", without_ansi(line)), 0, is_powershell=is_powershell)
    defined = Definitions(tuple(reader.values.items()), tuple(reader.functions.items()))
    return ShellLine(tuple(reader.segments), root, defined)


def split_commands(line: str) -> tuple[Segment, ...]:
    """Return the commands of a shell line in order."""
    return read_line(line).segments


class _Reader:
    """Turns simple commands into segments, and remembers what they define."""

    def __init__(self, definitions: Definitions) -> None:
        self.segments: list[Segment] = []
        self.values: dict[str, tuple[str, ...]] = dict(definitions.values)
        self.functions: dict[str, Node] = dict(definitions.functions)
        self.replaced: list[tuple[dict[str, Any], str, Any]] = []
        """The definitions so far: the names, one of them, and its value before."""
        self.calls = 0
        """Expanded calls of functions."""
        self.outer: tuple[str, ...] = ()
        """The launchers around the script that is read."""

    def script(self, text: str, depth: int, *, is_powershell: bool = False) -> Statements:
        return self.statements(parse_powershell(text) if is_powershell else parse(text), depth)

    def substituted(self, script: str, depth: int) -> Statements:
        """Read the script of a substitution, which runs in a subshell and prints for another command."""
        defined = len(self.replaced)
        statements = Statements(self.script(script, depth + 1).items, is_hidden=True)
        self.forget(defined)
        return statements

    def statements(self, block: Statements, depth: int) -> Statements:
        defined = len(self.replaced)
        items = tuple(Statement(self.node(each.node, depth), each.in_background) for each in block.items)
        if block.is_subshell:
            self.forget(defined)
        return Statements(items, block.is_hidden)

    def keep(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Define a name, None for nothing, and note what it was before."""
        self.replaced.append((names, name, names.pop(name, None)))
        if value is not None:
            names[name] = value

    def forget(self, defined: int) -> None:
        """Take back definitions, as a shell does that ends: all but the first so many."""
        while len(self.replaced) > defined:
            names, name, value = self.replaced.pop()
            names.pop(name, None)
            if value is not None:
                names[name] = value

    def node(self, node: Node, depth: int) -> Node:
        """Return a node whose simple commands are segments."""
        match node:
            case Simple():
                return self.simple(node.words, depth)
            case Pipeline():
                return Pipeline(tuple(self.node(each, depth) for each in node.items), node.is_negated)
            case Chain():
                return Chain(tuple(self.node(each, depth) for each in node.items), node.joiners)
            case Statements():
                return self.statements(node, depth)
            case If():
                return If(
                    tuple(
                        (
                            None if condition is None else self.statements(condition, depth),
                            self.statements(body, depth),
                        )
                        for condition, body in node.branches
                    )
                )
            case Loop():
                condition = None if node.condition is None else self.statements(node.condition, depth)
                return Loop(condition, self.statements(node.body, depth))
            case CaseStatement():
                return CaseStatement(tuple(self.statements(each, depth) for each in node.branches))
            case Expanded():
                before = node.before if depth < _DEEPEST else ()
                inside = tuple(self.node(each, depth + 1) for each in before)
                return Expanded(inside, self.node(node.node, depth))
            case Function():
                if node.name:
                    self.keep(self.functions, node.name, node.body)
                return Quiet()
            case _:
                return node

    def simple(self, words: Sequence[Word], depth: int) -> Node:
        at = 0
        while at < len(words) and (words[at].redirect or is_assignment(words[at])):
            at += 1
        if at == len(words) or not (command := self.expanded(words[at:])):
            return self.assigned(words, depth)
        name = command[0].value
        # Calls of a line's own functions that are followed.
        if name in self.functions and depth < _DEEPEST and self.calls < 1_000:
            self.calls += 1
            body = self.functions.pop(name)
            called = self.node(substitute_arguments(body, [word.value for word in command[1:]]), depth + 1)
            self.functions[name] = body
            return called
        self.define(command)
        return self.command((*(word for word in words[:at] if word.redirect), *command), words, depth)

    def assigned(self, words: Sequence[Word], depth: int) -> Node:
        """Read assignments without a command: `x=$(cmd)` alone ends as `cmd` does."""
        self.remember(words)
        scripts = [script for word in words for script in word.scripts]
        if not scripts or depth >= _DEEPEST:
            status = _STATUS.fullmatch(words[-1].value) if len(words) == 1 else None
            return Quiet(status[1], status[2] or "") if status else Quiet()
        return Statements(tuple(Statement(self.substituted(each, depth)) for each in scripts), is_hidden=True)

    def remember(self, words: Iterable[Word]) -> None:
        for word in words:
            name, sign, value = word.value.partition("=")
            if not sign or not name.isidentifier():
                continue
            if look_up := _LOOKED_UP.search(value):
                value = look_up[1]
            if "$(" in value or "`" in value or len(value) > LONGEST_VALUE:
                self.keep(self.values, name, None)
            else:
                self.keep(self.values, name, tuple(value.split()))

    def define(self, command: Sequence[Word]) -> None:
        name = command[0].value
        if name in ("export", "declare", "typeset", "local", "readonly"):
            self.remember(command[1:])
        elif name == "alias":
            for word in command[1:]:
                alias, sign, value = word.value.partition("=")
                if sign and value.split()[:1] != [alias] and len(value) <= LONGEST_VALUE:
                    self.keep(self.values, f"alias {alias}", tuple(value.split()))

    def expanded(self, words: Sequence[Word]) -> list[Word]:
        """Return the words with the variable or the alias that names the program replaced by its value."""
        words = list(words)
        for _ in range(_DEEPEST):
            first = words[0]
            if (name := _VARIABLE.fullmatch(first.value)) is not None:
                value = self.values.get(name[1] or name[2])
            elif (prefix := _VARIABLE.match(first.value)) and first.value[prefix.end() :].startswith("/"):
                known = self.values.get(prefix[1] or prefix[2])
                value = (known[0] + first.value[prefix.end() :],) if known and len(known) == 1 else None
            else:
                value = None if first.is_quoted else self.values.get(f"alias {first.value}")
            if value is None:
                break
            words[:1] = [Word(each, each) for each in value]
            if not words:
                break
        return words

    def command(self, command: Sequence[Word], typed: Sequence[Word], depth: int) -> Node:
        stages: list[LaunchedCommand] = []
        names: list[str] = []
        words = tuple(command)
        is_script = repeats = False
        while len(stages) < _MOST_STAGES:
            at = next(
                (n for n, word in enumerate(words) if not word.redirect and not is_assignment(word)),
                len(words),
            )
            words = (*(word for word in words[:at] if word.redirect), *words[at:])
            if not any(not word.redirect for word in words):
                break
            opened = open_launcher(_arguments(words))
            if opened is None:
                stages.append(_stage(words, is_script=is_script))
                break
            if opened.script is not None and depth < _DEEPEST:
                # A shell's here-document is expanded once, by the shell around it.
                before = self.substitutions([w for w in typed if w.document != opened.script], depth)
                node: Node = Statements(
                    self.inside((*names, opened.launcher), opened.script, depth).items,
                    any(map(hides_output, typed)),
                )
                node = Expanded(before, node) if before else node
                return Repeated(opened.launcher, node) if repeats or opened.repeats else node
            stages.append(_stage(words, is_script=is_script))
            if opened.image:
                stages.append(_stage(opened.image, is_script=True))
            names.append(opened.launcher)
            repeats |= opened.repeats
            if opened.script is not None or not opened.words:
                break
            redirections = tuple(word for word in words if word.redirect and word not in opened.words)
            words, is_script = (*opened.words, *redirections), opened.runs_script
        if not stages:
            return Quiet()
        before = self.substitutions(typed, depth)
        hidden = any(map(hides_output, typed)), any(map(hides_errors, typed))
        self.segments.append(Segment(tuple(stages), (*self.outer, *names), *hidden))
        leaf = Leaf(len(self.segments) - 1, before)
        repeating = next((name for name in reversed(names) if name in _REPEATING), "") if repeats else ""
        return Repeated(repeating, leaf) if repeating else leaf

    def inside(self, launchers: tuple[str, ...], script: str, depth: int) -> Statements:
        """Read the script that a launcher runs, in a separate shell except for `eval`."""
        outer, self.outer = self.outer, (*self.outer, *launchers)
        known = self.values, self.functions
        if launchers[-1] != "eval":
            # Variables may have been filled in before: the script may be in double quotes.
            self.values = {name: value for name, value in self.values.items() if name.isidentifier()}
            self.functions = {}
        statements = self.script(script, depth + 1, is_powershell=launchers[-1] in POWERSHELLS)
        self.values, self.functions = known
        self.outer = outer
        return statements

    def substitutions(self, words: Sequence[Word], depth: int) -> tuple[Node, ...]:
        if depth >= _DEEPEST:
            return ()
        scripts = [script for word in words for script in word.scripts]
        return tuple(self.substituted(each, depth) for each in scripts)


_REPEATING = frozenset(["xargs", "parallel", "find", "find +", "watch"])


def _arguments(words: Sequence[Word]) -> Sequence[Word]:
    """Return the words without redirections, except those that give a shell its script."""
    if program_name(words[0].value) in SHELLS:
        return words
    return [word for word in words if not word.redirect]


def _stage(words: Sequence[Word], *, is_script: bool = False) -> LaunchedCommand:
    ordered = [word for word in words if not word.redirect]
    first = ordered[0]
    program = program_name(first.value)
    parts, quoted, at = [first.quoted(program)], [], len(first.quoted(program))
    rest = [word for word in words if word is not first]
    for word in rest:
        text = word.quoted(word.masked)
        parts.append(text)
        if word.is_quoted:
            quoted.append((at + 1, at + 1 + len(text)))
        at += 1 + len(text)
    shown = [parts[0], *(word.quoted(word.value) for word in rest)]
    shown += [word.shown_document for word in rest if word.shown_document]
    return LaunchedCommand(
        (program, *(word.value for word in ordered[1:])),
        " ".join(parts),
        " ".join(shown),
        first.value if first.value != program else "",
        is_script,
        tuple(quoted),
    )


def substitute_arguments(node: Node, arguments: Sequence[str]) -> Node:
    """Return the body of a function with the arguments of a call in place of `$1` and `$@`."""
    match node:
        case Simple():
            words: list[Word] = []
            for word in node.words:
                if word.value in ("$@", "$*", "${@}", "${*}"):
                    words += [Word(each, each, is_quoted=True) for each in arguments]
                elif "$" in word.value:
                    words.append(_with_arguments(word, arguments))
                else:
                    words.append(word)
            return Simple(tuple(words))
        case Pipeline():
            return replace(node, items=tuple(substitute_arguments(each, arguments) for each in node.items))
        case Chain():
            return replace(node, items=tuple(substitute_arguments(each, arguments) for each in node.items))
        case Statements():
            return _in_statements(node, arguments)
        case Expanded():
            before = tuple(substitute_arguments(each, arguments) for each in node.before)
            return Expanded(before, substitute_arguments(node.node, arguments))
        case If():
            return If(
                tuple(
                    (
                        None if condition is None else _in_statements(condition, arguments),
                        _in_statements(body, arguments),
                    )
                    for condition, body in node.branches
                )
            )
        case Loop():
            condition = None if node.condition is None else _in_statements(node.condition, arguments)
            return Loop(condition, _in_statements(node.body, arguments))
        case CaseStatement():
            return CaseStatement(tuple(_in_statements(each, arguments) for each in node.branches))
        case _:
            return node


def _in_statements(statements: Statements, arguments: Sequence[str]) -> Statements:
    items = tuple(replace(each, node=substitute_arguments(each.node, arguments)) for each in statements.items)
    return replace(statements, items=items)


def _with_arguments(word: Word, arguments: Sequence[str]) -> Word:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in "@*":
            return " ".join(arguments)
        if name == "#":
            return str(len(arguments))
        at = int(name) - 1
        return arguments[at] if 0 <= at < len(arguments) else ""

    return replace(
        word,
        value=_ARGUMENT.sub(value, word.value),
        masked=_ARGUMENT.sub(value, word.masked),
        scripts=tuple(_ARGUMENT.sub(value, each) for each in word.scripts),
    )


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a command such as a tool's `binary`, the program cut to its name; none of an empty text."""
    words = [token for token in split_words(text) if isinstance(token, Word) and not token.redirect]
    return _stage(words).words if words else ()
