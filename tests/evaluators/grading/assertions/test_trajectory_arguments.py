"""Arguments and durations of the calls of a trajectory, which AgentV added in version 2.1."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.model import Event, Score, Transcript
from tests.evaluators.agentv_samples import score_of, traced

CALL = {"query": "weather", "where": {"city": "Rome"}, "n": 3}


def call(
    name: str, input: Any = None, at: int = 0, took: int | None = None, **more: Any
) -> list[dict[str, Any]]:
    """A call and its result, `at` seconds after the start."""
    times = [f"2026-01-01T00:00:{second:02}Z" for second in (at, at + (took or 0))]
    ends = {"timestamp": times[1]} if took is not None else {}
    return [
        {"type": "tool_call", "name": name, "input": input, "timestamp": times[0], **more},
        {"type": "tool_result", **ends},
    ]


def score(expected: Any, *calls: list[dict[str, Any]], mode: str = "in_order", **config: Any) -> Score:
    steps = expected if isinstance(expected, list) else [expected]
    given = {"type": "tool_trajectory", "mode": mode, "expected": steps, **config}
    return score_of(given, traced(*(event for each in calls for event in each)))


@pytest.mark.parametrize("mode", ["in_order", "exact"])
@pytest.mark.parametrize(
    ("step", "value"),
    [
        pytest.param({"args": {"query": "weather"}}, 1.0, id="one argument"),
        pytest.param({"args": {"n": 3.0, "where": {"city": "Rome"}}}, 1.0, id="a number and a nested one"),
        pytest.param({"args": {}}, 1.0, id="none named"),
        pytest.param({"args": None}, 1.0, id="any"),
        pytest.param({"args": {"query": "other"}}, 0.0, id="another value"),
        pytest.param({"args": {"where": {}}}, 0.0, id="half a nested one"),
        pytest.param({"args": {"page": 1}}, 0.0, id="one that is missing"),
        pytest.param({"args": {"page": None}}, 0.0, id="null is not missing"),
        pytest.param({"args": CALL, "args_match": "exact"}, 1.0, id="exact"),
        pytest.param({"args": {"query": "weather"}, "args_match": "exact"}, 0.0, id="exact with others"),
        pytest.param({"args": {**CALL, "page": 1}, "args_match": "subset"}, 1.0, id="subset"),
        pytest.param({"args": {"query": "weather"}, "args_match": "subset"}, 0.0, id="subset with others"),
        pytest.param({"args": {"query": "other"}, "args_match": "ignore"}, 1.0, id="ignored"),
        pytest.param({"args": {**CALL, "n": 9}, "args_match": ["query", "where.city"]}, 1.0, id="two names"),
        pytest.param({"args": {"n": 9}, "args_match": ["n"]}, 0.0, id="one name"),
    ],
)
def test_arguments_are_compared(mode: str, step: dict[str, Any], value: float) -> None:
    assert score({"tool": "search", **step}, call("search", CALL), mode=mode).value == value


def test_a_steps_rule_has_priority_over_the_evaluators() -> None:
    step = {"tool": "search", "args": {"n": 3}}
    assert score(step, call("search", CALL), args_match="exact").value == 0.0
    assert score(step | {"args_match": "superset"}, call("search", CALL), args_match="exact").value == 1.0


def test_a_later_call_may_have_the_arguments() -> None:
    step = {"tool": "search", "args": {"n": 3}}
    assert score(step, call("search", {"n": 1}), call("search", CALL)).value == 1.0
    assert score(step, call("search", {"n": 1}), call("search", CALL), mode="exact").value == 0.0


def test_a_miss_shows_both_arguments() -> None:
    found = score({"tool": "search", "args": {"n": 4}}, call("search", CALL))
    (miss,) = found.detail["misses"]
    assert miss.startswith('expected search with {"n": 4}, got {"query": "weather"')


def test_arguments_that_are_no_mapping_do_not_match() -> None:
    assert score({"tool": "search", "args": {}}, call("search", ["n"])).value == 0.0


def test_a_shells_command_is_its_argument() -> None:
    transcript = Transcript((Event("tool_call", name="bash", command="git log"),), "events")
    config = {
        "type": "tool_trajectory",
        "mode": "exact",
        "expected": [{"tool": "bash", "args": {"command": "git log"}}],
    }
    assert score_of(config, transcript).value == 1.0


@pytest.mark.parametrize("mode", ["in_order", "exact"])
@pytest.mark.parametrize(
    ("calls", "value", "said"),
    [
        (call("fetch", took=2), 1.0, "fetch completed in 2000ms (max: 2500ms)"),
        (call("fetch", took=3), 0.0, "fetch took 3000ms (max: 2500ms)"),
        (call("fetch", durationMs=2600), 0.0, "fetch took 2600ms (max: 2500ms)"),
        (call("fetch", took=50, duration_ms=2500), 1.0, "fetch completed in 2500ms (max: 2500ms)"),
    ],
)
def test_a_call_that_takes_too_long_is_a_miss(mode: str, calls: Any, value: float, said: str) -> None:
    found = score({"tool": "fetch", "max_duration_ms": 2500}, calls, mode=mode)
    assert found.value == value
    assert said in [*found.detail["hits"], *found.detail["misses"]]


def test_an_unknown_duration_is_said_and_not_counted() -> None:
    found = score({"tool": "fetch", "max_duration_ms": 10}, call("fetch"))
    assert found.value == 1.0
    assert found.message == "The duration of fetch is unknown; its maximum of 10ms was not checked."
