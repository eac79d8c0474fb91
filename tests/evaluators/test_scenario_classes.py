"""Classes of scenarios by their trials in order; | is new guidance or a new tool."""

from __future__ import annotations

import pytest

from evaluators.scenario_classes import classify

NAMES = {"p": "pass", "f": "fail", "e": "error", "|": "gap"}


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ("", "new"),
        ("pp", "new"),
        ("ppe", "new"),
        ("ppp", "solid"),
        ("pp|pe|p", "solid"),
        ("fff", "broken"),
        ("ppppppfffpppppffffpp", "flaky"),
        ("pffff", "broken"),
        ("ff|pp", "fixed"),
        ("ff|e|pp", "fixed"),
        ("ffffffffff|pp", "fixed"),
        ("pp|ff|pp", "fixed"),
        ("pp|ff", "broken"),
        ("f|pp", "flaky"),
        ("ff|p", "flaky"),
        ("ffpp", "flaky"),
        ("ff|pp|fp", "flaky"),
        ("p|f|p|f", "flaky"),
    ],
)
def test_a_scenario_has_one_class(trials, expected):
    assert classify([NAMES[each] for each in trials]) == expected
