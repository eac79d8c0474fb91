"""The wording of verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.statistics.measure_change import (
    ChangeVerdict,
    ComparisonTest,
    MeasureChange,
    MeasureRule,
    change_of,
)
from evaluators.statistics.verdict_sentences import explain_verdict, scenarios_worse, sign_of_p


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, "= –"),
        (0.25, "= 0.250"),
        (0.0049, "= 0.005"),
        (0.0004, "= 0.0004"),
        (0.0001, "= 0.0001"),
        (0.00009, "< 0.0001"),
        (0.0, "< 0.0001"),
    ],
)
def test_a_p_is_never_shown_as_nothing(p: float | None, text: str) -> None:
    assert sign_of_p(p) == text


def undecided(**fields: Any) -> MeasureChange:
    rule = MeasureRule("trial/pass", is_outcome=True)
    return change_of(rule, ChangeVerdict.TOO_LITTLE, 3, test=ComparisonTest.WITHIN_SCENARIOS, **fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"detectable": 0.634, "most_found": 1.0, "more_trials": 129},
            "This comparison could only have shown a change of 63 points. 129 more trials of each scenario in both runs would show"
            " 8 points, about $38.70.",
        ),
        ({"most_found": 0.661, "more_trials": None}, "Of comparisons this small, 34 % miss even the loss of every pass. To show 8 points takes over 1,000 trials of each scenario. Add scenarios."),
        ({"most_found": 0.0, "more_trials": 0}, "So few trials can't reach a verdict, whatever they show."),
    ],
    ids=["undecided", "misses much", "no verdict"],
)  # fmt: skip
def test_an_undecided_verdict_says_what_decides(fields: dict[str, Any], text: str) -> None:
    assert explain_verdict(undecided(**fields), dollars_a_trial=0.05) == text


def test_a_calm_run_says_where_its_line_expects_it() -> None:
    rule = MeasureRule("trial/pass", is_outcome=True)
    change = change_of(rule, ChangeVerdict.AS_EXPECTED, 3, after=0.9, expected=(0.84, 0.95))
    assert explain_verdict(change) == "90 %, expected 84 to 95 %."


def test_scenarios_are_counted_where_most_went() -> None:
    assert scenarios_worse(undecided(worse=0, better=1)) == "1 of 3 comparable scenarios better"
    assert scenarios_worse(undecided(worse=1, better=1)) == "1 of 3 comparable scenarios worse"
