"""Cases and doubles for the tests of the scoring evaluators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluators.grading.evaluate import Criteria
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.scores import EVALUATORS
from evaluators.model import CommandResult, Completion, CompletionError, CompletionRequest, Score, Transcript
from evaluators.transcripts.traces import read_trace


def traced(*items: dict[str, Any]) -> Transcript:
    return read_trace(items)


def called(*names: str) -> Transcript:
    """A trace with calls of these tools in order."""
    return traced(*({"type": "tool_call", "name": name} for name in names))


def score_of(config: Mapping[str, Any], transcript: Transcript | None = None, **criteria: Any) -> Score:
    """The score of one evaluator, as it stands in a file."""
    evaluator = EVALUATORS[config["type"]].model_validate(config)
    return evaluator.evaluate(Criteria(**criteria), TrialEvidence(transcript or Transcript()))[0]


@dataclass
class Judge:
    """A model that answers in turn, the last answer again and again; it records what it was asked."""

    answers: list[str | CompletionError]
    model: str = "judge-model"
    asked: list[CompletionRequest] = field(default_factory=list)

    def __call__(self, request: CompletionRequest) -> Completion:
        self.asked.append(request)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, CompletionError):
            raise answer
        return Completion(answer, self.model, cost_usd=0.01)


@dataclass
class Scripts:
    """A workspace in which every command ends alike; it records what was run."""

    result: CommandResult
    asked: list[dict[str, Any]] = field(default_factory=list)

    def run(self, command: str, **given: Any) -> CommandResult:
        self.asked.append({"command": command, **given})
        return self.result

    def read(self, path: str) -> str:
        raise AssertionError(f"{path} is not asked for")

    def exists(self, path: str) -> bool:
        raise AssertionError(f"{path} is not asked for")


CASE: dict[str, Any] = {
    "question": "What is six times seven?",
    "expected_outcome": "It says 42.",
    "reference_answer": "42",
    "expected_messages": [{"role": "assistant", "content": "42"}],
    "input_messages": [{"role": "user", "content": "What is six times seven?"}],
}


def judged(
    judge: Judge, transcript: Transcript | None = None, answer: str = "It is 42.", **config: Any
) -> Score:
    evaluator = EVALUATORS[config.setdefault("type", "llm_judge")].model_validate(config)
    evidence = TrialEvidence(transcript or Transcript(), answer=answer, complete=judge)
    return evaluator.evaluate(Criteria(**CASE), evidence)[0]


def printed(value: Any, **more: Any) -> CommandResult:
    return CommandResult(0, json.dumps(value), **more)
