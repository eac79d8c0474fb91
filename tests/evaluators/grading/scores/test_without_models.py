from __future__ import annotations

from typing import Any

import pytest

from evaluators.grading.evaluate import Criteria
from evaluators.grading.scores.composite_evaluator import without_models

TRAJECTORY = {"type": "tool_trajectory", "mode": "any_order", "minimums": {"a": 1}}
SCRIPT = {"type": "code_judge", "script": "x"}
JUDGE = {"type": "llm_judge"}
RUBRIC = {"type": "rubric", "rubrics": [{"id": "a", "description": "x"}]}


def composite(*members: dict[str, Any], aggregator: str = "weighted_average") -> dict[str, Any]:
    how = {"type": aggregator, **({"path": "x"} if aggregator == "code_judge" else {})}
    return {"type": "composite", "evaluators": members, "aggregator": how}


def read(*evaluators: dict[str, Any]) -> Criteria:
    return Criteria.model_validate({"evaluators": evaluators})


@pytest.mark.parametrize(
    ("given", "left"),
    [
        pytest.param([TRAJECTORY, JUDGE, RUBRIC, SCRIPT], [TRAJECTORY, SCRIPT], id="judges go"),
        pytest.param([composite(JUDGE, TRAJECTORY)], [composite(TRAJECTORY)], id="a composite loses them"),
        pytest.param([composite(JUDGE)], [], id="an empty composite goes"),
        pytest.param([composite(SCRIPT, aggregator="llm_judge")], [], id="a model that aggregates goes"),
        pytest.param([composite(composite(JUDGE), SCRIPT)], [composite(SCRIPT)], id="also within another"),
    ],
)
def test_evaluators_without_a_model_remain(given, left):
    assert without_models(read(*given).evaluators) == read(*left).evaluators


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        (TRAJECTORY, False),
        (JUDGE, False),
        (SCRIPT, True),
        (composite(TRAJECTORY), False),
        (composite(SCRIPT), True),
        (composite(TRAJECTORY, aggregator="code_judge"), True),
    ],
)
def test_it_reports_which_evaluators_run_commands(given, needs):
    assert read(given).evaluators[0].needs_workspace is needs
