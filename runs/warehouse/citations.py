"""Which of a trial's commands a gate or a judge's statement is about, as links into the timeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.warehouse.timeline import Step, address

MOST_CITED = 5
"""Commands that are linked from one place."""
LONGEST_OUTPUT = 20_000
"""Characters of a command's output in which a quotation is looked for."""

_FAILED_COMMANDS = "no_transcript_errors"
_OF_CALLS = ("toolsCalled", "toolsAcceptable", "toolsNotCalled", "tool_called", "toolParams")
_FAILED_CALLS = "noToolErrors"
_FILE = re.compile(r"[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}(?![\w.])")
_QUOTED = re.compile(
    r"`([^`\n]{2,200})`|“([^”\n]{2,200})”|\"([^\"\n]{2,200})\"|(?<!\w)'([^'\n]{2,200})'(?!\w)"
)
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]+")


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
    is_missing: bool = False
    """Whether something is quoted that no command and no output holds."""


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
            return self._cited("failed", lambda step: step.failed and step.ours)
        if gate["layer"] == "assertions":
            return self._of_assertion(gate["name"], " ".join(map(str, detail.get("failures") or ())))
        names = _files(detail)
        if not names:
            return None
        named = ", ".join(names)
        pattern = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in names))
        found = self._cited(f"named {named} in", lambda step: bool(pattern.search(step.line)))
        return found if found.commands else Cited(f"no command named {named}")

    def of_statement(self, text: str) -> Cited | None:
        """Return the commands that a judge's statement quotes; None where no command is known."""
        if not self._calls:
            return None
        quoted = _quotations(text)
        if not quoted:
            return Cited("quotes no command")
        for together in (all, any):
            found = self._cited("in", _holding(quoted, together))
            if found.commands:
                return found
        return Cited("no line found", is_missing=True)

    def _of_assertion(self, name: str, failures: str) -> Cited | None:
        if name not in (*_OF_CALLS, _FAILED_CALLS):
            return None
        words = set(re.findall(r"[\w.:/-]+", failures))
        found = self._cited(
            "calls", lambda step: step.subcommand in words and (name != _FAILED_CALLS or step.failed)
        )
        return found if found.commands else None

    @property
    def _calls(self) -> bool:
        return any(step.number for step in self.steps)

    def _cited(self, label: str, is_meant: Callable[[Step], bool]) -> Cited:
        found = [(at, step.number) for at, step in enumerate(self.steps) if step.number and is_meant(step)]
        links = tuple(Citation(number, address(at, number, self.start)) for at, number in found[:MOST_CITED])
        return Cited(label, links, len(found) - len(links))


def _files(detail: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that a gate looks at."""
    if "command" in detail:
        found: Sequence[str] = _FILE.findall(str(detail["command"])[:1000])
    else:
        found = [str(detail.get("path") or "").rstrip("/").rpartition("/")[2]]
    return [name for name in dict.fromkeys(found) if len(name) > 2][:3]


def _quotations(text: str) -> list[str]:
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(text[:2000])]
    return list(dict.fromkeys((*quoted, *_FLAG.findall(_QUOTED.sub(" ", text[:2000])))))


def _holding(quoted: Sequence[str], together: Callable[[Iterable[bool]], bool]) -> Callable[[Step], bool]:
    return lambda step: together(_holds(step, each) for each in quoted)


def _holds(step: Step, quotation: str) -> bool:
    return quotation in step.line or quotation in step.output[:LONGEST_OUTPUT]
