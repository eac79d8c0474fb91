"""Gates that look at a command's exit code and output."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from evaluators.gates.base import CommandGate
from evaluators.gates.texts import PatternText, Verdict, contains, matches
from evaluators.model import CommandResult


class CommandSucceeds(CommandGate):
    """The command exits with 0."""

    type: Literal["command_succeeds"] = "command_succeeds"

    def judge(self, result: CommandResult) -> Verdict:
        message = f"`{self.command}` exited with {result.exit_code}."
        return result.exit_code == 0, message, {"expected": 0, "actual": result.exit_code}


class OutputGate(CommandGate):
    """A gate on stdout, which needs exit code 0 only where it says so."""

    require_success: bool = False

    def judge(self, result: CommandResult) -> Verdict:
        exited = f"`{self.command}` exited with {result.exit_code}"
        if self.require_success and result.exit_code != 0:
            return False, f"{exited}, and success is required.", {}
        passed, what, extra = self.judge_output(result.stdout)
        return passed, f"{exited}; {what}", extra

    @abstractmethod
    def judge_output(self, stdout: str) -> Verdict:
        """Return the verdict on the output, the end of its message and what more to keep."""


class CommandOutputContains(OutputGate):
    """The command's stdout contains a text."""

    type: Literal["command_output_contains"] = "command_output_contains"
    substring: str

    def judge_output(self, stdout: str) -> Verdict:
        return contains("its output", stdout, self.substring)


class CommandOutputMatches(OutputGate):
    """The command's stdout matches a regular expression somewhere."""

    type: Literal["command_output_matches"] = "command_output_matches"
    pattern: PatternText

    def judge_output(self, stdout: str) -> Verdict:
        return matches("its output", stdout, self.pattern)
