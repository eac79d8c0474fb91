"""Pair tool calls with their results."""

from __future__ import annotations

import pytest

from evaluators.model import Event
from evaluators.tool_use.calls import pair_calls
from tests.linear_time import assert_linear_time


def pairs(*events: Event) -> list[tuple[int, str | None]]:
    """Return for each call its index and the text of its result."""
    return [(call.index, call.result.text if call.result else None) for call in pair_calls(events)]


def test_results_without_an_id_belong_to_the_first_open_call():
    first, second = Event("tool_call", "a"), Event("tool_call")
    assert pairs(first, second, Event("tool_result", text="1"), Event("tool_result", text="2")) == [
        (0, "1"),
        (1, "2"),
    ]


def test_results_with_an_unknown_id_belong_to_the_first_open_call_without_one():
    named, unnamed = Event("tool_call", "a"), Event("tool_call")
    result = Event("tool_result", "only-the-result-has-one", text="1")
    assert pairs(named, unnamed, result) == [(0, None), (1, "1")]
    assert pairs(unnamed, Event("tool_result", text="0"), result) == [(0, "0")]


def test_an_error_belongs_only_to_the_call_with_its_id():
    assert pairs(
        Event("tool_call"), Event("tool_call", "a"), Event("error", "a", text="1"), Event("error")
    ) == [(0, None), (1, "1")]


@pytest.mark.hostile
@pytest.mark.parametrize(("call", "result"), [("call", "result"), (None, None), (None, "result")])
def test_many_calls_are_paired_in_linear_time(call, result):
    def events(number):
        asked = [Event("tool_call", call and f"{call}-{n}") for n in range(number)]
        return asked + [Event("tool_result", result and f"{result}-{n}") for n in range(number)]

    def pair(given):
        paired = sum(each.result is not None for each in pair_calls(given))
        assert paired == (len(given) / 2 if call is None else 0)

    assert_linear_time(pair, events(12_500), events(50_000))


@pytest.mark.parametrize(
    ("began", "ended", "seconds", "times"),
    [
        ("2026-11-01T10:00:00Z", "2026-11-01T10:00:02+00:00", None, (0.0, 2.0)),
        ("2026-11-01T10:00:00", None, 0.5, (0.0, 0.5)),
        ("2026-11-01T10:00:00Z", "2026-11-01T10:00:02Z", 0.5, (0.0, 0.5)),
        (None, "2026-11-01T10:00:02Z", 0.5, (1.5, 0.5)),
        ("2026-11-01T10:00:02Z", "2026-11-01T10:00:00Z", None, (2.0, 0.0)),
        ("1793527200", "1793527202.5", None, (0.0, 2.5)),
        ("1793527200000", None, None, (0.0, None)),
        ("yesterday", None, None, (None, None)),
        ("2026-13-01T10:00:00Z", "nan", 1.0, (None, 1.0)),
    ],
)
def test_a_call_says_when_it_ran(began, ended, seconds, times):
    event = Event("tool_call", "1", timestamp=began)
    result = Event("tool_result", "1", timestamp=ended, seconds=seconds)
    start, took = pair_calls([event, result])[0].times()
    origin = 1793527200.0
    assert (None if start is None else start - origin, took) == times
