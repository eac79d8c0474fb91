"""What every gate has."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pydantic import Field

from evaluators.evidence import Evidence
from evaluators.gates.texts import Verdict
from evaluators.model import CommandResult, Json, Score
from evaluators.values import Kind

EXCERPT = 2_000
"""Characters of a command's output that a gate's detail keeps."""

NOT_RUN = "Not run: needs a workspace on a worker."


class BaseGate(Kind):
    """A deterministic check with a verdict and a message; each kind has its own `type`."""

    needs_workspace: ClassVar[bool] = True
    """Whether it looks into the workspace; one that reads the transcript does not."""

    name: str | None = None
    timeout_seconds: float = Field(default=30.0, gt=0)

    @abstractmethod
    def check(self, evidence: Evidence) -> Score:
        """Return the verdict. Never raises for what the agent left behind."""

    def score(self, passed: bool | None, message: str, *, error: str = "", **detail: Json) -> Score:
        """Return the gate's score: 1.0 or 0.0, and no value where it did not decide."""
        if self.name:
            detail["name"] = self.name
        value = None if passed is None else float(passed)
        return Score("gates", self.type, value, passed, message, detail, error)


class CommandGate(BaseGate):
    """A gate that runs a command in the workspace and judges what came of it."""

    command: str
    network: bool = False

    def check(self, evidence: Evidence) -> Score:
        if evidence.workspace is None:
            return self.score(None, NOT_RUN, command=self.command)
        if not self.command.strip():
            return self.score(False, "The command is blank.", command=self.command)
        result = evidence.workspace.run(
            self.command, timeout_seconds=self.timeout_seconds, env=evidence.command_env, network=self.network
        )
        detail = _detail(self.command, result)
        if result.timed_out:
            return self.score(
                False, f"`{self.command}` timed out after {self.timeout_seconds:g} s.", **detail
            )
        if result.exit_code is None:
            sentence = result.error or f"`{self.command}` could not be run."
            return self.score(None, sentence, error=sentence, **detail)
        passed, message, extra = self.judge(result)
        return self.score(passed, message, **detail, **extra)

    @abstractmethod
    def judge(self, result: CommandResult) -> Verdict:
        """Return the verdict on a command that ended by itself, its message and what more to keep."""


def excerpt(text: str) -> str:
    """Return head and tail of a long text, with the number of characters left out between."""
    if len(text) <= EXCERPT:
        return text
    half = EXCERPT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _detail(command: str, result: CommandResult) -> dict[str, Json]:
    return {
        "command": command,
        "exit_code": result.exit_code,
        "stdout": excerpt(result.stdout),
        "stderr": excerpt(result.stderr),
        "truncated": result.truncated,
    }
