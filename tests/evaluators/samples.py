"""Small values and doubles for the tests of the evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import (
    CommandResult,
    Completion,
    CompletionError,
    CompletionRequest,
    Event,
    FileUnavailable,
    Transcript,
)


@dataclass
class FakeWorkspace:
    """A workspace of files and answers in memory; it records what it was asked to run."""

    files: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, CommandResult] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        network: bool = False,
    ) -> CommandResult:
        self.asked.append(
            {"command": command, "timeout_seconds": timeout_seconds, "env": env, "network": network}
        )
        return self.results[command]

    def read(self, path: str) -> str:
        if not self.exists(path):
            raise FileUnavailable(f"{path} does not exist.")
        return self.files[path]

    def exists(self, path: str) -> bool:
        if ".." in path or path.startswith("/"):
            raise FileUnavailable(f"{path} leads out of the workspace.")
        return path in self.files


@dataclass
class FakeModel:
    """Answers in turn; an exception is raised instead. It records what it was asked."""

    answers: list[str | Completion | CompletionError]
    model: str = "judge-model"
    asked: list[CompletionRequest] = field(default_factory=list)

    def __call__(self, request: CompletionRequest) -> Completion:
        self.asked.append(request)
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, CompletionError):
            raise answer
        if isinstance(answer, Completion):
            return answer
        return Completion(answer, self.model, cost_usd=0.01, seconds=2.0)


def printed(stdout: str = "", *, exit_code: int | None = 0, **more: Any) -> CommandResult:
    return CommandResult(exit_code, stdout, **more)


def evidence(transcript: Transcript | None = None, **given: Any) -> TrialEvidence:
    return TrialEvidence(transcript or Transcript(), **{"exit_code": 0, **given})


def shell_call(command: str, exit_code: int | None = 0, *, id: str | None = None) -> tuple[Event, Event]:
    """A call of a shell and its result."""
    return (
        Event("tool_call", id=id, name="bash", command=command),
        Event("tool_result", id=id, exit_code=exit_code),
    )


def events(*lines: tuple[str, int | None]) -> Transcript:
    """A transcript of shell calls, each with the exit code it ended with."""
    found = [event for command, code in lines for event in shell_call(command, code)]
    return Transcript(events=tuple(found), source="events")
