"""Samples of one scenario as one, and what more trials would show."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from evaluators.statistics.measure_change import MeasureRule, Sample, pool_samples
from evaluators.statistics.regression import compare_headline, detectable_with

PASS = MeasureRule("trial/pass", is_outcome=True)


def sample(values):
    mean = fmean(values)
    return Sample(len(values), mean, sum((each - mean) ** 2 for each in values))


def test_pooled_samples_equal_the_sample_of_all_values():
    rng = random.Random(3)
    for _ in range(50):
        one, other = ([rng.random() for _ in range(rng.randrange(1, 9))] for _ in range(2))
        found, whole = pool_samples(sample(one), sample(other)), sample(one + other)
        assert found == pytest.approx(whole)


def compared(n):
    before = {str(at): Sample(n, 1.0 if at % 3 else 2 / 3) for at in range(12)}
    after = {str(at): Sample(n, 1.0 if at % 4 else 1 / 3) for at in range(12)}
    return compare_headline([(PASS, before, after)])[0], before, after


def test_more_trials_of_more_scenarios_show_smaller_changes():
    change, before, after = compared(3)
    none, some, each, many = (
        detectable_with(change, before, after, trials, keys)
        for trials, keys in ((5, ()), (5, ("0", "4")), (5, before.keys()), (500, before.keys()))
    )
    assert none == pytest.approx(change.detectable)
    assert none > some > each > many > 0


def test_without_a_test_more_trials_have_no_forecast():
    change = compare_headline([(MeasureRule("judge/judge"), {"a": Sample(1, 0.5)}, {"a": Sample(1, 0.6)})])[0]
    assert detectable_with(change, {"a": Sample(1, 0.5)}, {"a": Sample(1, 0.6)}, 5, ["a"]) is None
