"""Gates that look at a command's exit code and output."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from evaluators.gates.base_gate import CommandGate, PatternText, Verdict, contains, matches
from evaluators.json_values import json_output
from evaluators.model import CommandResult, Json


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


class Script(CommandGate):
    """The script's own `passed` decides where it prints one as JSON, else its exit code."""

    type: Literal["script"] = "script"
    description: str = ""

    def judge(self, result: CommandResult) -> tuple[bool, str, dict[str, Json]]:
        said = json_output(result.stdout)
        if not isinstance(said, dict) or not isinstance(said.get("passed"), bool):
            about = self.description or f"`{self.command}`"
            return result.exit_code == 0, f"{about}: exited with {result.exit_code}.", {}
        message = said.get("message")
        text = message if isinstance(message, str) and message else self.description
        return said["passed"], text or f"`{self.command}` decided.", {"detail": said.get("detail")}
