"""Gates that look at a command's exit code and output."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from evaluators.gates.base import CommandGate
from evaluators.model import CommandResult, Json
from evaluators.patterns import SlowPattern, compile_pattern


def _compiles(text: str) -> str:
    compile_pattern(text)
    return text


PatternText = Annotated[str, AfterValidator(_compiles)]
"""The text of a regular expression, checked when the gate is made."""


class CommandSucceeds(CommandGate):
    """The command exits with 0."""

    type: Literal["command_succeeds"] = "command_succeeds"

    def judge(self, result: CommandResult) -> tuple[bool, str, dict[str, Json]]:
        message = f"`{self.command}` exited with {result.exit_code}."
        return result.exit_code == 0, message, {"expected": 0, "actual": result.exit_code}


class OutputGate(CommandGate):
    """A gate on stdout, which needs exit code 0 only where it says so."""

    require_success: bool = False

    def judge(self, result: CommandResult) -> tuple[bool, str, dict[str, Json]]:
        exited = f"`{self.command}` exited with {result.exit_code}"
        if self.require_success and result.exit_code != 0:
            return False, f"{exited}, and success is required.", {}
        passed, what, extra = self.judge_output(result.stdout)
        return passed, f"{exited}; {what}", extra

    def judge_output(self, stdout: str) -> tuple[bool, str, dict[str, Json]]:
        """Return the verdict on the output, the end of its message and what more to keep."""
        raise NotImplementedError


class CommandOutputContains(OutputGate):
    """The command's stdout contains a text."""

    type: Literal["command_output_contains"] = "command_output_contains"
    substring: str

    def judge_output(self, stdout: str) -> tuple[bool, str, dict[str, Json]]:
        passed = self.substring in stdout
        verb = "contains" if passed else "does not contain"
        return passed, f"its output {verb} '{self.substring}'.", {"expected": self.substring}


class CommandOutputMatches(OutputGate):
    """The command's stdout matches a regular expression somewhere."""

    type: Literal["command_output_matches"] = "command_output_matches"
    pattern: PatternText

    def judge_output(self, stdout: str) -> tuple[bool, str, dict[str, Json]]:
        try:
            match = compile_pattern(self.pattern).search(stdout)
        except SlowPattern as error:
            return False, str(error), {"expected": self.pattern}
        verb = "matches" if match else "does not match"
        actual = match.text if match else None
        return (
            match is not None,
            f"its output {verb} '{self.pattern}'.",
            {"expected": self.pattern, "actual": actual},
        )
