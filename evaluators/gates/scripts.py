"""The gate that leaves the verdict to a script."""

from __future__ import annotations

from typing import Literal

from evaluators.gates.base import CommandGate
from evaluators.model import CommandResult, Json
from evaluators.printed_json import whole_or_last_line


class Script(CommandGate):
    """The script's own `passed` decides where it prints one as JSON, else its exit code."""

    type: Literal["script"] = "script"
    description: str = ""

    def judge(self, result: CommandResult) -> tuple[bool, str, dict[str, Json]]:
        said = whole_or_last_line(result.stdout)
        if not isinstance(said, dict) or not isinstance(said.get("passed"), bool):
            about = self.description or f"`{self.command}`"
            return result.exit_code == 0, f"{about}: exited with {result.exit_code}.", {}
        message = said.get("message")
        text = message if isinstance(message, str) and message else self.description
        return said["passed"], text or f"`{self.command}` decided.", {"detail": said.get("detail")}
