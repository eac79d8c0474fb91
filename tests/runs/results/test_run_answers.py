"""A run's badge says one answer: the first that is true."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from runs.results.run_list import answer_of

PLAIN = {
    "state": "finished",
    "error": "",
    "passed": 19,
    "failed": 1,
    "errors": 0,
    "verdict": "",
    "not_started": "",
    "is_unchecked": False,
    "is_experiment": False,
}


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        ({"state": "preparing", "verdict": "regressed"}, "running"),
        ({"state": "cancelled", "verdict": "regressed"}, "cancelled"),
        ({"error": "No program.", "verdict": "regressed"}, "error"),
        ({"not_started": "It isn't there.", "errors": 10}, "tool_not_started"),
        ({"errors": 10, "verdict": "regressed"}, "errors"),
        ({"is_unchecked": True}, "unchecked"),
        ({"verdict": "regressed", "rule": "missed"}, "regressed"),
        ({"verdict": "improved", "needs_all": True}, "failed"),
        ({"verdict": "improved", "needs_all": True, "failed": 0}, "improved"),
        ({"verdict": "improved", "rule": "missed"}, "below_release_rule"),
        ({"verdict": "small_change", "rule": "met"}, "small_change"),
        ({"verdict": "equivalent"}, "as_before"),
        ({"verdict": "no_evidence"}, "as_before"),
        ({"verdict": "too_little"}, "undecided"),
        ({"verdict": "not_comparable"}, "not_comparable"),
        ({}, "new_line"),
        ({"is_experiment": True}, "experiment"),
    ],
)
def test_the_first_that_is_true(facts, answer):
    given = {name: facts[name] for name in ("rule", "needs_all") if name in facts}
    assert answer_of(SimpleNamespace(**PLAIN | facts), **given) == answer
