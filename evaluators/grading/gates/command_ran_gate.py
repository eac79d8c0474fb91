"""The gate on a command that the agent ran."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from evalhub.lib.numbers import counted
from evaluators.grading.evidence import Evidence
from evaluators.grading.gates.base_gate import BaseGate
from evaluators.model import Score
from evaluators.tool_use.calls import calls
from evaluators.tool_use.shell import segments, words_of

_SHOWN = 5
_HELP = frozenset(("--help", "-h"))
NO_COMMANDS = "The agent's output has no events, so it isn't known which commands it ran."

Word = Annotated[str, Field(min_length=1)]


class CommandRan(BaseGate):
    """The agent ran a command with these words in this order and these flags, however it ended; help doesn't count."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["command_ran"] = "command_ran"
    words: list[Word] = Field(min_length=1)
    """The program, and in this order what else its command has, such as its subcommand."""
    flags: list[Word] = Field(default_factory=list)
    """Each a flag, or one with its value: `--title Milk` and `--title=Milk` are the same."""
    without_flags: list[Word] = Field(default_factory=list)
    """Flags that such a command doesn't have."""
    times: int | None = Field(default=None, ge=0)
    """Exact number of such commands; None means at least one."""

    def check(self, evidence: Evidence) -> Score:
        interaction = evidence.interaction
        if interaction.problem:
            return self.score(None, interaction.problem, error=interaction.problem)
        if not evidence.transcript.events and interaction.source == "none":
            return self.score(None, NO_COMMANDS, error=NO_COMMANDS)
        program = posixpath.basename(self.words[0])
        called = [words for words in _commands(evidence, program) if posixpath.basename(words[0]) == program]
        fitting = [words for words in called if self._fits(words)]
        wanted = "at least 1" if self.times is None else str(self.times)
        passed = bool(fitting) if self.times is None else len(fitting) == self.times
        flags = "".join(f" {flag}" for flag in self.flags)
        without = f" without {', '.join(self.without_flags)}" if self.without_flags else ""
        message = f"`{' '.join(self.words)}{flags}`{without} ran {_times(len(fitting))}; expected {wanted}."
        if interaction.lost and _is_tool(evidence, program):
            # A lost one may be one too many.
            passed = passed and self.times is None
            message += f" {counted(interaction.lost, 'execution')} of the tool could not be recorded."
        lines = [" ".join(words) for words in called[:_SHOWN]]
        return self.score(passed, message, expected=wanted, actual=len(fitting), commands=lines)

    def _fits(self, words: Sequence[str]) -> bool:
        rest = iter(words[1:])
        in_order = all(any(word == each for each in rest) for word in self.words[1:])
        return (
            in_order
            and all(_has_flag(words, flag) for flag in self.flags)
            and not any(_has_flag(words, flag) for flag in self.without_flags)
            and not (_HELP & set(words) - set(self.flags))
        )


def _commands(evidence: Evidence, program: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command: as layer 1 counted them if the program is its tool, else as the agent's shell got them."""
    if _is_tool(evidence, program):
        yield from (words for each in evidence.interaction.commands if (words := words_of(each.line)))
        return
    for call in calls(evidence.transcript.events):
        if call.event.command and not call.not_run:
            yield from (part.words for part in segments(call.event.command) if part.words)


def _is_tool(evidence: Evidence, program: str) -> bool:
    """Return whether layer 1 counted the commands of this program."""
    tool = evidence.tool
    return bool(
        tool and evidence.interaction.source != "none" and posixpath.basename(tool.binary or "") == program
    )


def _has_flag(words: Sequence[str], flag: str) -> bool:
    """Return whether a command has a flag, with its value if one is written."""
    name, value = split_flag(flag)
    if value is None:
        return any(word == name or word.startswith(f"{name}=") for word in words)
    pairs = pairwise(words)
    return f"{name}={value}" in words or any(pair == (name, value) for pair in pairs)


def split_flag(flag: str) -> tuple[str, str | None]:
    """Return a flag's name, and its value if it has one."""
    try:
        parts = shlex.split(flag) or [flag]
    except ValueError:
        parts = flag.split()
    name, is_given, value = parts[0].partition("=")
    values = [*([value] if is_given else []), *parts[1:]]
    return name, " ".join(values) if values else None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
