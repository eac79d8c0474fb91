"""Gates on a command's exit code and output, and the gate of a script."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from evaluators.grading.gates.base_gate import CommandGate, PatternText, Verdict, contains, matches
from evaluators.json_values import cut_deep, json_output
from evaluators.model import CommandResult, Json


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
        return contains("its output", stdout, self.substring)


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
