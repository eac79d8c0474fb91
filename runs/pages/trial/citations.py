"""Which of a trial's commands a gate or a judge's statement is about, as links into the timeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runs.pages.trial.steps import Step
from runs.pages.trial.timeline import address

MOST_CITED = 5
"""Commands that are linked from one place."""
LONGEST_OUTPUT = 20_000
"""Characters of a command's output in which a quotation is looked for."""
MOST_IN_PROSE = 3
"""Commands that are linked behind one quotation of a longer text."""
LONGEST_STATEMENT = 2_000
LONGEST_PROSE = 4_000
"""Characters of a statement, and of a longer text, that are looked at."""
MOST_QUOTED = 20
"""Quotations of one text that are looked for."""

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
"""Programs that leave the files that they name as they are."""
_PARTS = re.compile(r"&&|\|\|?|;|\n")
_OF_CALLS = ("toolsCalled", "toolsAcceptable", "toolsNotCalled", "tool_called", "toolParams")
_FAILED_CALLS = "noToolErrors"
_FILE = re.compile(r"[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}(?![\w.])")
# Each alternative begins with its character, which lets the search pass over all others at once.
_MENTION = re.compile(
    r"`[^`\n]+`|“[^”\n]{2,200}”|\"[^\"\n]{2,200}\"|'(?<!\w')[^'\n]{2,200}'(?!\w)"
    r"|-(?<![\w-]-)-?[A-Za-z][\w-]+(?:=\S*\w)?"
)
"""What is quoted, and flags with their values."""


@dataclass(frozen=True)
class Citation:
    """A link to a command of the timeline."""

    number: int
    address: str


@dataclass(frozen=True)
class Cited:
    """The commands that something is about."""

    label: str
    """What they are, or why there is none."""
    commands: tuple[Citation, ...] = ()
    more: int = 0
    source: Citation | None = None
    """The last one that may have made what was found; None where none is known."""
    is_missing: bool = False
    """Whether something is quoted that no command and no output holds."""


@dataclass(frozen=True)
class Passage:
    """A stretch of a text, and the commands that its last words quote."""

    text: str
    commands: tuple[Citation, ...] = ()


@dataclass(frozen=True)
class Citations:
    """The commands of a trial, to be found by what was said about them."""

    steps: Sequence[Step]
    """All of the timeline."""
    start: int | None
    """The step that the part on the page begins with; None where no part is."""

    def of_gate(self, gate: Mapping[str, Any]) -> Cited | None:
        """Return the commands that a failed gate is about; None where it is about none, or nothing is known."""
        detail = gate.get("detail") or {}
        if gate.get("passed") is not False or not self._calls:
            return None
        if gate["name"] == _FAILED_COMMANDS:
            return self._cited("failed", self._where(lambda step: step.failed and step.ours))
        if gate["layer"] == "assertions":
            return self._of_assertion(gate["name"], " ".join(map(str, detail.get("failures") or ())))
        names = _files(detail)
        return self._of_files(names) if names else self._of_command(str(detail.get("command") or ""))

    def of_statement(self, text: str) -> Cited | None:
        """Return the commands that a judge's statement quotes; None where no command is known."""
        if not self._calls:
            return None
        found = [self._holding(each) for each, _ in _mentions(text[:LONGEST_STATEMENT])]
        if not found:
            return Cited("no command cited")
        together = set(found[0]).intersection(*found) or {at for each in found for at in each}
        return self._cited("in", sorted(together)) if together else Cited("no matching line", is_missing=True)

    def in_prose(self, text: str) -> list[Passage]:
        """Return a text in passages that end where it quotes a command, each quotation once; the last ends with it.

        What no command holds is not marked: prose quotes much else.
        """
        passages, begin = [], 0
        for quotation, end in _mentions(text[:LONGEST_PROSE]) if self._calls else ():
            found = self._holding(quotation)
            if found:
                passages.append(Passage(text[begin:end], self._links(found[:MOST_IN_PROSE])))
                begin = end
        return [*passages, Passage(text[begin:])]

    def _of_files(self, names: Sequence[str]) -> Cited:
        """Return the commands that name one of these files, and the last that may have written it."""
        named = ", ".join(names)
        pattern = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in names))
        found = [at for at, words, _ in self._calls if pattern.search(words)]
        if not found:
            return Cited(f"no command named {named}")
        made = [
            at for at in found if not self.steps[at].failed and _may_write(_words(self.steps[at]), pattern)
        ]
        return self._cited(f"named {named} in", found, source=made[-1:])

    def _of_command(self, command: str) -> Cited | None:
        """Return where the agent gave the very command that a gate gives."""
        found = self._where(lambda step: command in (step.line, step.typed)) if command else []
        return self._cited("the same command in", found, source=found[-1:]) if found else None

    def _of_assertion(self, name: str, failures: str) -> Cited | None:
        if name not in (*_OF_CALLS, _FAILED_CALLS):
            return None
        words = set(re.findall(r"[\w.:/-]+", failures))
        at = self._where(lambda step: step.subcommand in words and (name != _FAILED_CALLS or step.failed))
        return self._cited("calls", at) if at else None

    @cached_property
    def _calls(self) -> list[tuple[int, str, str]]:
        """The steps that are calls, with their lines and as much of their outputs as is looked at."""
        return [
            (at, _words(step), step.output[:LONGEST_OUTPUT])
            for at, step in enumerate(self.steps)
            if step.number
        ]

    def _holding(self, quotation: str) -> list[int]:
        """Return the steps of a command that is quoted whole, else those that hold the quotation."""
        whole = [at for at, _, _ in self._calls if quotation in (self.steps[at].line, self.steps[at].typed)]
        return whole or [at for at, words, output in self._calls if quotation in words or quotation in output]

    def _where(self, is_meant: Callable[[Step], bool]) -> list[int]:
        return [at for at, _, _ in self._calls if is_meant(self.steps[at])]

    def _cited(self, label: str, found: Sequence[int], source: Sequence[int] = ()) -> Cited:
        """Return the first of some steps as links, with one of them as the source where there is one."""
        more = max(0, len(found) - MOST_CITED)
        return Cited(label, self._links(found[:MOST_CITED]), more, next(iter(self._links(source)), None))

    def _links(self, found: Iterable[int]) -> tuple[Citation, ...]:
        numbers = ((at, self.steps[at].number) for at in found)
        return tuple(Citation(number, address(at, number, self.start)) for at, number in numbers)


def _words(step: Step) -> str:
    """Return a call's line as it is shown and as it was typed."""
    return f"{step.line}\n{step.typed}" if step.typed not in ("", step.line) else step.line


def _may_write(line: str, named: re.Pattern[str]) -> bool:
    """Tell whether a command line may have written what it names: a redirection does, a program that reads does not."""
    parts = [part for part in _PARTS.split(line) if named.search(part)]
    return any(">" in part or _program(part) not in _READERS for part in parts)


def _program(part: str) -> str:
    """Return the program that a command line begins with, without its folder."""
    return next(iter(part.split(maxsplit=1)), "").rpartition("/")[2]


def _files(detail: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that a gate looks at."""
    if "command" in detail:
        found: Sequence[str] = _FILE.findall(str(detail["command"])[:1000])
    else:
        found = [str(detail.get("path") or "").rstrip("/").rpartition("/")[2]]
    return [name for name in dict.fromkeys(found) if len(name) > 2][:3]


def _mentions(text: str) -> list[tuple[str, int]]:
    """Return what a text quotes, each once, with the place where it ends; flags without their values."""
    found: dict[str, int] = {}
    for mention in _MENTION.finditer(text):
        words = mention[0]
        quotation = words.partition("=")[0] if words[0] == "-" else words[1:-1]
        # A single letter is in every command.
        if len(quotation) > 1:
            found.setdefault(quotation, mention.end())
        if len(found) == MOST_QUOTED:
            break
    return list(found.items())
