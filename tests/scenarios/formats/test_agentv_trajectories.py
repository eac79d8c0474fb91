"""Checks of calls and steps in eval files of AgentV, in all the shapes that it reads."""

from __future__ import annotations

import pytest

from evaluators.grading.assertions.tool_checks import StepCount
from evaluators.grading.scores import BaseEvaluator
from scenarios.formats import parse_files
from scenarios.formats.problems import Problem

FILE = "prompts: [Refund?]\ntests:\n  - id: a\n    assert:\n      - "


def read(entry: str) -> tuple[BaseEvaluator, tuple[Problem, ...]]:
    (found,) = parse_files({"a.eval.yaml": f"{FILE}{entry}\n".encode()}, name="folder")
    return found.scenarios[0].criteria.evaluators[0], found.lints


@pytest.mark.parametrize(
    ("value", "step", "pattern"),
    [
        ("{max: 3}", "any", ""),
        ("{type: tool, max: 3}", "tool", ""),
        ("{type: command, name: 'git *', max: 3}", "command", "git *"),
        ("{name: a, pattern: 'b*', max: 3}", "any", "b*"),
    ],
)
def test_steps_are_counted_by_type_and_name(value, step, pattern):
    found, lints = read(f"{{type: 'trajectory:step-count', value: {value}}}")
    assert isinstance(found, StepCount)
    assert (found.step, found.pattern) == (step, pattern)
    assert lints == ()
