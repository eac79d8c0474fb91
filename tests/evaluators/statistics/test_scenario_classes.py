"""Classes of scenarios by their trials in order; | is new guidance or a new tool."""

from __future__ import annotations

import pytest
from scipy.stats import beta

from evaluators.statistics.scenario_classes import (
    BROKEN_SHARE,
    LEAST_PROBABILITY,
    SOLID_RATE,
    beta_cdf,
    class_probability,
    classify,
)
from tests.evaluators.statistics.simulated_classes import classified

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


@pytest.mark.parametrize("rate", [BROKEN_SHARE, 0.5, SOLID_RATE])
def test_the_posterior_is_that_of_scipy(rate):
    for passed in range(21):
        for failed in range(21):
            exact = beta.cdf(rate, passed + 0.5, failed + 0.5)
            assert beta_cdf(rate, passed, failed) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("trials", "text"),
    [
        ("p", "too few trials, n = 1"),
        ("ppp", "too few trials, n = 3"),
        ("pppe", "too few trials, n = 3"),
        ("p" * 10, "85 % sure, n = 10"),
        ("p" * 20, "96 % sure, n = 20"),
        ("fff", "82 % sure, n = 3"),
        ("pf" * 5, "95 % sure, n = 10"),
        ("p" * 19 + "f", "too few trials, n = 20"),
        # What guidance or a tool changed rests on the trials since.
        ("ffffff|pp", "too few trials, n = 2"),
        ("ff|" + "p" * 12, "89 % sure, n = 12"),
        ("pppppppp|fff", "82 % sure, n = 3"),
    ],
)
def test_a_class_says_what_it_rests_on(trials, text):
    assert class_probability([NAMES[each] for each in trials]).text == text


@pytest.mark.simulation
def test_classes_that_are_sure_are_right():
    few, many = classified(3, 2_000), classified(20, 2_000)
    assert min(few.right, many.right) > LEAST_PROBABILITY
    assert few.solid_at_70 == 0.0 and many.flaky_at_97 < 0.02
    assert many.sure > 0.7
