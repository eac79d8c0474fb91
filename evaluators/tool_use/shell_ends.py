"""Derive how each command of a shell line ended from the line's exit code and output.

What follows from the shell's rules (POSIX, Shell Command Language, 2.9) or is written in the output is known; all else is
unknown. A line of `&&` that fails is one failure: its last command has the line's code, unless the output says that an
earlier one failed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import product

from msgspec import Struct

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.tool_use.shell import Segment, ShellLine
from evaluators.tool_use.shell_stated import Stated, echoed_line, stated_statuses
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

FAILED = -1_000_000
"""In place of an exit code: it failed with an unknown one."""
_ALWAYS_SUCCEED = frozenset(["true", ":", "echo", "printf", "sleep", "pwd", "set", "export", "wait"])
_FILTERS = frozenset(
    ["cat", "head", "tail", "tee", "sort", "uniq", "wc", "tr", "nl", "less", "more", "fold", "column"]
)
"""Programs that succeed on any standard input."""
_CD_FAILED = re.compile(
    r"\b(?:cd|pushd): .*(?:No such file|Not a directory|Permission denied|too many arguments|not set)|can't cd to"
)
_LAUNCHER_CODES = {"ssh": {255}, "docker": {125}, "podman": {125}, "docker-compose": {125}}
"""Exit codes that are a launcher's own."""
_ENDING = frozenset(["exit", "return"])


class Ending(Struct, frozen=True):
    """How a command ended."""

    code: int | None = None
    failed: bool = False
    """Whether it failed; with an unknown code if `code` is None."""
    ran: bool = True
    """False if it certainly did not run."""
    at_least: bool = False
    """Whether it ran any number of times."""

    @property
    def known(self) -> bool:
        """Return whether the end is known."""
        return self.failed or self.code is not None


def ends_of(
    line: ShellLine, targets: Collection[int], code: int | None, output: str | None
) -> dict[int, Ending]:
    """Return how the target segments of a line ended.

    `targets` are indexes of its segments, `code` is the line's exit code, `output` what it printed; None is unknown.
    """
    only = line.root.items[0] if len(line.root.items) == 1 else None
    if only and isinstance(only.node, Leaf) and not only.in_background and not only.node.before:
        endings = {only.node.segment: _own_end(line.segments[only.node.segment], code)}
    else:
        reader = _Ends(line, output)
        reader.statements(line.root, code)
        endings = reader.found
    return {each: endings.get(each, Ending()) for each in sorted(targets)}


def _own_end(segment: Segment, status: int | None) -> Ending:
    """Return the end of a command from the status of its launchers."""
    if status is None or any(status in _LAUNCHER_CODES.get(name, ()) for name in segment.launchers):
        return Ending()
    return Ending(code=None if status == FAILED else status, failed=status != 0)


class _Ends:
    """Walks a line's tree from the top, where the status is known, to the segments."""

    def __init__(self, line: ShellLine, output: str | None) -> None:
        self.segments = line.segments
        self.output = output if output is None or len(output) <= LONGEST_TEXT else None
        self.lines = frozenset(each.strip() for each in (self.output or "").split("\n"))
        self.stated: Stated = stated_statuses(line, self.output or "")
        self.found: dict[int, Ending] = {}
        self.pipefail = self.errexit = False

    def node(self, node: Node, status: int | None, *, ran: bool = True, repeats: bool = False) -> None:
        """Give a node its status; `ran` is False if it certainly did not run."""
        match node:
            case Leaf():
                for child in node.before:
                    self.node(child, None, ran=ran, repeats=repeats)
                ending = _own_end(self.segments[node.segment], status)
                self.found[node.segment] = Ending(ending.code, ending.failed, ran, repeats)
            case Repeated():
                is_whole = status == 0 and node.launcher in ("xargs", "parallel", "find +")
                self.node(node.node, 0 if is_whole else None, ran=ran, repeats=True)
            case Statements():
                self.statements(node, status, ran=ran, repeats=repeats)
            case Expanded():
                for child in node.before:
                    self.node(child, None, ran=ran, repeats=repeats)
                self.node(node.node, status, ran=ran, repeats=repeats)
            case Pipeline():
                self.pipeline(node, status, ran=ran, repeats=repeats)
            case Chain():
                self.chain(node, status, ran=ran, repeats=repeats)
            case If():
                self.conditional(node, status, ran=ran, repeats=repeats)
            case Loop():
                if node.condition is not None:
                    self.statements(node.condition, None, ran=ran, repeats=True)
                self.statements(node.body, None, ran=ran, repeats=True)
            case CaseStatement():
                for branch in node.branches:
                    self.statements(branch, None, ran=ran, repeats=repeats)

    def statements(
        self, block: Statements, status: int | None, *, ran: bool = True, repeats: bool = False
    ) -> None:
        before = self.pipefail, self.errexit
        last = self.passing(block.items, status)
        for at, statement in enumerate(block.items):
            self.set_options(statement.node)
            known = status if at == last else 0 if self.must_succeed(statement.node, status) else None
            if self.errexit and len(block.items) > 1:
                # Only a failure of these ends the shell.
                ends = isinstance(statement.node, Leaf | Pipeline | Statements) and not (
                    isinstance(statement.node, Pipeline) and statement.node.is_negated
                )
                known = 0 if status == 0 and ends else None
            if not repeats:
                known = self.stated.statements.get(id(statement), known)
            self.node(statement.node, None if statement.in_background else known, ran=ran, repeats=repeats)
        self.pipefail, self.errexit = before

    def set_options(self, node: Node) -> None:
        words = self.segments[node.segment].words if isinstance(node, Leaf) else ()
        if words[:1] == ("set",):
            self.pipefail |= "pipefail" in words
            self.errexit |= "errexit" in words or any(re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in words)

    def passing(self, items: Sequence[Statement], status: int | None) -> int:
        """Return the statement whose status a list has; -1 if that is uncertain."""
        if not items or items[-1].in_background:
            return -1
        at = len(items) - 1
        while at and self.passes_on(items[at].node):
            at -= 1
        ends_early = any(self.may_end_with(each.node, status) for each in items[:at])
        return -1 if ends_early or items[at].in_background else at

    def must_succeed(self, node: Node, status: int | None) -> bool:
        """Return whether `… || exit N` succeeded, because the shell ended with another status."""
        if status is None or not isinstance(node, Chain) or node.joiners[-1] != "||":
            return False
        last = node.items[-1]
        words = self.segments[last.segment].words if isinstance(last, Leaf) else ("",)
        return words[0] in _ENDING and words[1:2] not in ((), ("$?",), (str(status),)) and words[1].isdigit()

    def passes_on(self, node: Node) -> bool:
        """Return whether a command has the status of the one before it, as `exit $?` has."""
        words = self.segments[node.segment].words if isinstance(node, Leaf) else ("",)
        return words[0] in _ENDING and words[1:] in ((), ("$?",))

    def may_end_with(self, node: Node, status: int | None) -> bool:
        """Return whether a command may end the shell with this status."""
        match node:
            case Leaf():
                words = self.segments[node.segment].words
                return words[0] in _ENDING and words[1:2] in ((), (str(status),), ("$?",))
            case Chain():
                return any(self.may_end_with(each, status) for each in node.items)
            case Statements():
                return any(self.may_end_with(each.node, status) for each in node.items)
            case If():
                return any(self.may_end_with(body, status) for _, body in node.branches)
            case Loop():
                return self.may_end_with(node.body, status)
            case Expanded():
                return self.may_end_with(node.node, status)
        return False

    def pipeline(self, node: Pipeline, status: int | None, *, ran: bool, repeats: bool) -> None:
        if node.is_negated:
            status = None if status is None else FAILED if status == 0 else 0
        said = self.stated.pipelines.get(id(node), {})
        for at, stage in enumerate(node.items):
            known = status if at == len(node.items) - 1 else None
            if self.pipefail:
                others = [other for n, other in enumerate(node.items) if n != at]
                is_sure = status == 0 or all(self.outcomes(other) == {True} for other in others)
                known = status if is_sure else None
            self.node(stage, None if repeats else said.get(at, known), ran=ran, repeats=repeats)

    def conditional(self, node: If, status: int | None, *, ran: bool, repeats: bool) -> None:
        # An `if` that no branch follows has status 0.
        ran_branch = len(node.branches) == 1 and status not in (0, None)
        for at, (condition, body) in enumerate(node.branches):
            if condition is not None:
                known = 0 if ran_branch else self.condition_status(node) if at == 0 else None
                self.statements(condition, None if repeats else known, ran=ran, repeats=repeats)
            self.statements(body, status if ran_branch else None, ran=ran, repeats=repeats)

    def condition_status(self, node: If) -> int | None:
        """Return the first condition's status by the branches' literal texts in the output."""
        shown = [self.is_shown(body) for _, body in node.branches]
        if shown[0] is True and True not in shown[1:]:
            return 0
        if shown[0] is not True and (True in shown[1:] or shown[0] is False):
            return FAILED
        return None

    def is_shown(self, body: Statements) -> bool | None:
        """Return whether a branch's literal text is in the output; None if it has none."""
        for statement in body.items:
            if isinstance(statement.node, Leaf) and (
                text := echoed_line(self.segments[statement.node.segment])
            ):
                return None if self.output is None or body.is_hidden else text in self.lines
        return None

    def chain(self, node: Chain, status: int | None, *, ran: bool, repeats: bool) -> None:
        possible = list(self.possible(node, status)) or list(self.possible(node, status, with_output=False))
        for at, command in enumerate(node.items):
            outcomes = {case[at] for case in possible}
            if outcomes == {None}:
                self.node(command, None, ran=False, repeats=repeats)
                continue
            known = None
            if (said := self.stated.chains.get((id(node), at))) is not None:
                known = said
            elif possible and all(_last_run(case) == at for case in possible):
                known = status
            elif outcomes in ({True}, {False}):
                known = 0 if True in outcomes else FAILED
            self.node(command, None if repeats else known, ran=ran, repeats=repeats)
        self.blame(node, status)

    def blame(self, node: Chain, status: int | None) -> None:
        """Blame the last command of a line of `&&` that failed, unless the output says who failed."""
        last = _only_leaf(node.items[-1])
        if status in (0, None) or set(node.joiners) != {"&&"} or last is None:
            return
        ending = self.found[last.segment]
        if ending.ran and not ending.known and not ending.at_least and not self.names_another(node):
            code = None if status == FAILED else status
            self.found[last.segment] = Ending(code, failed=True)

    def names_another(self, node: Chain) -> bool:
        """Return whether an earlier command of a chain, or the shell of it, writes an error message."""
        programs = [self.segments[each.segment].words[0] for each in node.items if isinstance(each, Leaf)]
        names = "|".join(re.escape(name) for name in programs[:-1] if name != programs[-1])
        pattern = rf"^(?:\S*sh: (?:line \d+: )?)?(?:{names}): "
        return bool(names) and re.search(pattern, self.output or "", re.MULTILINE) is not None

    def possible(
        self, node: Chain, status: int | None, *, with_output: bool = True
    ) -> Iterator[tuple[bool | None, ...]]:
        """Yield the outcomes of a chain's commands that agree with its status and output: None is *did not run*."""
        n = len(node.items)
        # Commands of a chain whose outcomes are enumerated.
        if n > 8:
            if status == 0 and set(node.joiners) == {"&&"}:
                yield (True,) * n
            return
        shown = [self.executed(node, at) if with_output else None for at in range(n)]
        seen = set()
        for wanted in product(*(self.outcomes(each) for each in node.items)):
            case = _run(wanted, node.joiners)
            agrees = status is None or case[_last_run(case)] is (status == 0)
            agrees &= all(each in (None, case[at] is not None) for at, each in enumerate(shown))
            if agrees and case not in seen:
                seen.add(case)
                yield case

    def executed(self, node: Chain, at: int) -> bool | None:
        """Return whether the output shows that a command of a chain ran; None if it can't tell."""
        command = node.items[at]
        if (id(node), at) in self.stated.printed:
            return self.stated.printed[id(node), at]
        if self.output is None or not isinstance(command, Leaf):
            return None
        text = echoed_line(self.segments[command.segment])
        return text in self.lines if text else None

    def outcomes(self, node: Node) -> set[bool]:
        """Return the outcomes that a command can have."""
        if isinstance(node, Quiet):
            return {True}
        if isinstance(node, Pipeline) and node.is_negated:
            return {not each for each in self.outcomes(Pipeline(node.items))}
        if isinstance(node, Pipeline):
            return {True, False} if self.pipefail else self.outcomes(node.items[-1])
        if not isinstance(node, Leaf):
            return {True, False}
        segment = self.segments[node.segment]
        program, *arguments = segment.words
        # Whether a filter reads files, which may be missing.
        if program in _ALWAYS_SUCCEED or (
            program in _FILTERS
            and not any(not word.startswith("-") and not word.isdigit() for word in arguments)
        ):
            return {True}
        if program == "false":
            return {False}
        if program in _ENDING and arguments and arguments[0].isdigit():
            return {arguments[0] == "0"}
        if program in ("cd", "pushd") and self.output is not None and not segment.hides_errors:
            # What the shell's own words say of `cd`, which never fails without them.
            if not _CD_FAILED.search(self.output or ""):
                return {True}
            changes = sum(each.words[0] in ("cd", "pushd") for each in self.segments)
            return {False} if changes == 1 else {True, False}
        return {True, False}


def _only_leaf(node: Node) -> Leaf | None:
    """Return the one command of a node, None if it has several."""
    while isinstance(node, Statements) and len(node.items) == 1 and not node.items[0].in_background:
        node = node.items[0].node
    return node if isinstance(node, Leaf) else None


def _run(wanted: Sequence[bool], joiners: Sequence[str]) -> tuple[bool | None, ...]:
    """Return the outcome of each command of a chain if all that run end as wanted; None for one that doesn't run."""
    result = wanted[0]
    outcomes: list[bool | None] = [result]
    for outcome, joiner in zip(wanted[1:], joiners, strict=True):
        if result is (joiner == "&&"):
            result = outcome
            outcomes.append(outcome)
        else:
            outcomes.append(None)
    return tuple(outcomes)


def _last_run(case: Sequence[bool | None]) -> int:
    return max(at for at, outcome in enumerate(case) if outcome is not None)
