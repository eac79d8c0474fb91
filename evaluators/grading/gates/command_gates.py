"""Gates on the result of a command that evalhub runs, and on the commands that the agent ran."""

from __future__ import annotations

import posixpath
import shlex
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from evalhub.lib.numbers import format_count
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.base_gate import (
    BaseGate,
    CommandGate,
    PatternText,
    Verdict,
    contains_text,
    matches,
)
from evaluators.json_values import cut_deep, json_output
from evaluators.model import CommandResult, Json, Score
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.shell import split_commands, words_of


class CommandSucceeds(CommandGate):
    """The command exits with 0."""

    type: Literal["command_succeeds"] = "command_succeeds"

    def judge(self, result: CommandResult) -> Verdict:
        message = f"`{self.command}` exited with {result.exit_code}."
        return result.exit_code == 0, message, {"expected": 0, "actual": result.exit_code}


class OutputGate(CommandGate):
    """A gate on stdout; it requires exit code 0 only with `require_success`."""

    require_success: bool = False

    def judge(self, result: CommandResult) -> Verdict:
        exited = f"`{self.command}` exited with {result.exit_code}"
        if self.require_success and result.exit_code != 0:
            return False, f"{exited}, but the gate requires success.", {}
        passed, what, extra = self.judge_output(result.stdout)
        return passed, f"{exited}; {what}", extra

    @abstractmethod
    def judge_output(self, stdout: str) -> Verdict:
        """Return the verdict on the output, the end of its message and details to store."""


class CommandOutputContains(OutputGate):
    """The command's stdout contains a text."""

    type: Literal["command_output_contains"] = "command_output_contains"
    substring: str

    def judge_output(self, stdout: str) -> Verdict:
        return contains_text("its output", stdout, self.substring)


class CommandOutputMatches(OutputGate):
    """A regular expression matches the command's stdout."""

    type: Literal["command_output_matches"] = "command_output_matches"
    pattern: PatternText

    def judge_output(self, stdout: str) -> Verdict:
        return matches("its output", stdout, self.pattern)


class Script(CommandGate):
    """The script's `passed` decides if it prints one as JSON, else its exit code."""

    type: Literal["script"] = "script"
    description: str = ""

    def judge(self, result: CommandResult) -> tuple[bool, str, dict[str, Json]]:
        output = json_output(result.stdout)
        if not isinstance(output, dict) or not isinstance(output.get("passed"), bool):
            title = self.description or f"`{self.command}`"
            return result.exit_code == 0, f"{title}: exited with {result.exit_code}.", {}
        message = output.get("message")
        text = message if isinstance(message, str) and message else self.description
        return (
            output["passed"],
            text or f"`{self.command}` decided.",
            {"detail": cut_deep(output.get("detail"))},
        )


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

    def check(self, evidence: TrialEvidence) -> Score:
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
            message += f" {format_count(interaction.lost, 'execution')} of the tool could not be recorded."
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


def _commands(evidence: TrialEvidence, program: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command: as layer 1 counted them if the program is its tool, else as the agent's shell got them."""
    if _is_tool(evidence, program):
        yield from (words for each in evidence.interaction.commands if (words := words_of(each.line)))
        return
    for call in pair_calls(evidence.transcript.events):
        if call.event.command and not call.not_run:
            yield from (part.words for part in split_commands(call.event.command) if part.words)


def _is_tool(evidence: TrialEvidence, program: str) -> bool:
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
