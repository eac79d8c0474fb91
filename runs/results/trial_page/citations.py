"""Link a gate or a judge's statement to the trial's commands that it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runs.results.trial_page.steps import TimelineStep
from runs.results.trial_page.timeline import call_address

MOST_CITED = 5
"""Maximum linked commands per gate or statement."""
LONGEST_OUTPUT = 20_000
"""Characters of a command's output that are searched for a quotation."""
MOST_IN_PROSE = 3
"""Maximum linked commands per quotation in a longer text."""
LONGEST_STATEMENT = 2_000
LONGEST_PROSE = 4_000
"""Characters of a statement, and of a longer text, that are searched for quotations."""
MOST_QUOTED = 20
"""Maximum quotations per text."""

_FAILED_COMMANDS = "no_transcript_errors"
_READERS = frozenset(
    [
        "cat",
        "bat",
        "head",
        "tail",
        "less",
        "more",
        "nl",
        "wc",
        "ls",
        "stat",
        "file",
        "find",
        "tree",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "jq",
        "yq",
        "diff",
        "cmp",
        "test",
        "[",
        "xxd",
        "od",
    ]
)
"""Programs that only read the files that they name."""
_PARTS = re.compile(r"&&|\|\|?|;|\n")
_OF_CALLS = ("toolsCalled", "toolsAcceptable", "toolsNotCalled", "toolParams")
_FAILED_CALLS = "noToolErrors"
_FILE = re.compile(r"[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}(?![\w.])")
# Each alternative begins with its own character, which makes the search fast.
_MENTION = re.compile(
    r"`[^`\n]+`|“[^”\n]{2,200}”|\"[^\"\n]{2,200}\"|'(?<!\w')[^'\n]{2,200}'(?!\w)"
    r"|-(?<![\w-]-)-?[A-Za-z][\w-]+(?:=\S*\w)?"
)
"""Quotations, and flags with their values."""


@dataclass(frozen=True)
class Citation:
    """A link to a command of the timeline."""

    number: int
    address: str


@dataclass(frozen=True)
class Cited:
    """The commands that a gate or a statement is about."""

    label: str
    """Description of the commands, or why there are none."""
    commands: tuple[Citation, ...] = ()
    more: int = 0
    source: Citation | None = None
    """The last command that may have produced the result; None if unknown."""
    is_missing: bool = False
    """Whether a quotation is in no command and no output."""


@dataclass(frozen=True)
class Passage:
    """Part of a text, and the commands that its end quotes."""

    text: str
    commands: tuple[Citation, ...] = ()


@dataclass(frozen=True)
class Citations:
    """Finds a trial's commands by gates and statements about them."""

    steps: Sequence[TimelineStep]
    """All steps of the timeline."""
    start: int | None
    """First step of the part on the page; None if the page shows no part."""

    def of_gate(self, gate: Mapping[str, Any]) -> Cited | None:
        """Return the commands that a failed gate is about; None if unknown."""
        detail = gate.get("detail") or {}
        if gate.get("passed") is not False or not self._calls:
            return None
        if gate["name"] == _FAILED_COMMANDS:
            return self._cite("failed", self._where(lambda step: step.failed and step.ours))
        if gate["layer"] == "assertions":
            return self._of_assertion(gate["name"], " ".join(map(str, detail.get("failures") or ())))
        names = _files(detail)
        return self._of_files(names) if names else self._of_command(str(detail.get("command") or ""))

    def of_statement(self, text: str) -> Cited | None:
        """Return the commands that a judge's statement quotes; None if the trial has no known commands."""
        if not self._calls:
            return None
        quoted = [self._holding(quotation) for quotation, _ in _mentions(text[:LONGEST_STATEMENT])]
        if not quoted:
            return Cited("no command cited")
        together = set(quoted[0]).intersection(*quoted) or {at for calls in quoted for at in calls}
        return self._cite("in", sorted(together)) if together else Cited("no matching line", is_missing=True)

    def in_prose(self, text: str) -> list[Passage]:
        """Split a text after each first quotation of a command; the last passage is the rest.

        Other quotations stay unmarked, because prose quotes much else.
        """
        passages, begin = [], 0
        for quotation, end in _mentions(text[:LONGEST_PROSE]) if self._calls else ():
            calls = self._holding(quotation)
            if calls:
                passages.append(Passage(text[begin:end], self._links(calls[:MOST_IN_PROSE])))
                begin = end
        return [*passages, Passage(text[begin:])]

    def _of_files(self, names: Sequence[str]) -> Cited:
        """Return the commands that name one of these files, and the last one that may have written it."""
        named = ", ".join(names)
        pattern = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in names))
        naming = [at for at, words, _ in self._calls if pattern.search(words)]
        if not naming:
            return Cited(f"no command named {named}")
        writers = [
            at for at in naming if not self.steps[at].failed and _may_write(_words(self.steps[at]), pattern)
        ]
        return self._cite(f"named {named} in", naming, source=writers[-1:])

    def _of_command(self, command: str) -> Cited | None:
        """Return where the agent ran a gate's command itself."""
        places = self._where(lambda step: command in (step.line, step.typed)) if command else []
        return self._cite("the same command in", places, source=places[-1:]) if places else None

    def _of_assertion(self, name: str, failures: str) -> Cited | None:
        if name not in (*_OF_CALLS, _FAILED_CALLS):
            return None
        words = set(re.findall(r"[\w.:/-]+", failures))
        at = self._where(lambda step: step.subcommand in words and (name != _FAILED_CALLS or step.failed))
        return self._cite("calls", at) if at else None

    @cached_property
    def _calls(self) -> list[tuple[int, str, str]]:
        """Return index, line and searched output of the steps that are calls."""
        return [
            (at, _words(step), step.output[:LONGEST_OUTPUT])
            for at, step in enumerate(self.steps)
            if step.number
        ]

    def _holding(self, quotation: str) -> list[int]:
        """Return the steps whose whole command is quoted, else those that contain the quotation."""
        whole = [at for at, _, _ in self._calls if quotation in (self.steps[at].line, self.steps[at].typed)]
        return whole or [at for at, words, output in self._calls if quotation in words or quotation in output]

    def _where(self, is_meant: Callable[[TimelineStep], bool]) -> list[int]:
        return [at for at, _, _ in self._calls if is_meant(self.steps[at])]

    def _cite(self, label: str, steps: Sequence[int], source: Sequence[int] = ()) -> Cited:
        """Return the first steps as links, with their source if known."""
        more = max(0, len(steps) - MOST_CITED)
        return Cited(label, self._links(steps[:MOST_CITED]), more, next(iter(self._links(source)), None))

    def _links(self, steps: Iterable[int]) -> tuple[Citation, ...]:
        numbers = ((at, self.steps[at].number) for at in steps)
        return tuple(Citation(number, call_address(at, number, self.start)) for at, number in numbers)


def _words(step: TimelineStep) -> str:
    """Return a call's line as shown and as typed."""
    return f"{step.line}\n{step.typed}" if step.typed not in ("", step.line) else step.line


def _may_write(line: str, named: re.Pattern[str]) -> bool:
    """Return whether a command line may have written the named file: by a redirection or a program that writes."""
    parts = [part for part in _PARTS.split(line) if named.search(part)]
    return any(
        ">" in part or (next(iter(part.split(maxsplit=1)), "").rpartition("/")[2]) not in _READERS
        for part in parts
    )


def _files(detail: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that a gate checks."""
    if "command" in detail:
        names: Sequence[str] = _FILE.findall(str(detail["command"])[:1000])
    else:
        names = [str(detail.get("path") or "").rstrip("/").rpartition("/")[2]]
    return [name for name in dict.fromkeys(names) if len(name) > 2][:3]


def _mentions(text: str) -> list[tuple[str, int]]:
    """Return a text's unique quotations with the positions of their ends; flags without their values."""
    ends: dict[str, int] = {}
    for mention in _MENTION.finditer(text):
        words = mention[0]
        quotation = words.partition("=")[0] if words[0] == "-" else words[1:-1]
        # A single letter is in every command.
        if len(quotation) > 1:
            ends.setdefault(quotation, mention.end())
        if len(ends) == MOST_QUOTED:
            break
    return list(ends.items())
