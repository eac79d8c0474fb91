from itertools import combinations

import pytest

from evaluators.statistics.descriptive import (
    pass_at_k,
    pass_hat_k,
    shrunken_rates,
    student_quantile,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("passes", "total", "published"),
    [
        # What scipy 1.17 gives: scipy.stats.binomtest(passes, total).proportion_ci(method="wilson").
        (0, 1, (0.0, 0.7934506856227626)),
        (1, 1, (0.20654931437723745, 1.0)),
        (0, 10, (0.0, 0.27753279986288926)),
        (7, 10, (0.39677814746114526, 0.892208732593699)),
        (10, 10, (0.7224672001371109, 1.0)),
        # Newcombe 1998, table I, has 0.2553 to 0.3662.
        (81, 263, (0.2552885198782742, 0.36620957698280004)),
    ],
)
def test_the_interval_is_wilsons(passes, total, published):
    # The deviations that scipy takes for 95 %, which 1.96 rounds.
    found = wilson_interval(passes, total, z=1.959963984540054)
    assert (found.lower, found.upper) == pytest.approx(published, abs=1e-12)


def test_the_center_is_pulled_towards_one_half():
    assert wilson_interval(50, 100).center == pytest.approx(0.5)
    assert 0.5 < wilson_interval(9, 10).center < 0.9


def test_fewer_deviations_make_a_narrower_interval():
    narrow, wide = wilson_interval(5, 10, z=1), wilson_interval(5, 10)
    assert narrow.upper - narrow.lower < wide.upper - wide.lower


def test_without_trials_everything_is_possible():
    found = wilson_interval(0, 0)
    assert (found.lower, found.upper) == (0.0, 1.0)


@pytest.mark.parametrize(("passes", "total"), [(3, 2), (-1, 2), (0, -1)])
def test_it_refuses_invalid_rates(passes, total):
    with pytest.raises(ValueError, match="is not a rate"):
        wilson_interval(passes, total)


@pytest.mark.parametrize(
    ("probability", "freedom", "published"),
    [
        # Tables of Student's t, as in every textbook.
        (0.975, 2, 4.303),
        (0.975, 4, 2.776),
        (0.975, 9, 2.262),
        (0.975, 19, 2.093),
        (0.975, 120, 1.980),
        (0.8, 2, 1.061),
        (0.8, 4, 0.941),
        (0.8, 19, 0.861),
        (0.5, 7, 0.0),
    ],
)
def test_quantiles_are_students_within_a_hundredth(probability, freedom, published):
    assert student_quantile(probability, freedom) == pytest.approx(published, rel=0.01, abs=1e-9)


def test_one_degree_of_freedom_is_refused():
    with pytest.raises(ValueError, match="degrees of freedom are too few"):
        student_quantile(0.975, 1)


@pytest.mark.parametrize(("passed", "trials", "k"), [(13, 20, 3), (0, 4, 2), (4, 4, 4), (1, 2, 3)])
def test_pass_k_counts_the_draws_of_k_trials(passed, trials, k):
    drawn = list(combinations([True] * passed + [False] * (trials - passed), k))
    every, some = pass_hat_k(passed, trials, k), pass_at_k(passed, trials, k)
    if not drawn:
        assert every is some is None
    else:
        assert every == pytest.approx(sum(map(all, drawn)) / len(drawn))
        assert some == pytest.approx(sum(map(any, drawn)) / len(drawn))


def test_pass_k_needs_a_trial():
    with pytest.raises(ValueError, match="k is 0"):
        pass_hat_k(1, 2, 0)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([], []),
        ([(0, 0)], [0.0]),
        ([(3, 10)], [0.3]),
        ([(0, 5), (0, 9)], [0.0, 0.0]),
        ([(5, 5), (9, 9)], [1.0, 1.0]),
    ],
)
def test_rates_without_anything_to_learn_from_stay(counts, expected):
    assert shrunken_rates(counts) == expected


def test_rates_of_few_trials_are_drawn_towards_the_pooled_one():
    counts = [(2, 2), (80, 100), (5, 100), (0, 0), (10, 100), (40, 100)]
    few, high, low, none, *_ = shrunken_rates(counts)
    pooled = 137 / 402
    assert pooled < few < 0.9
    assert 0.75 < high < 0.8
    assert 0.05 < low < 0.09
    assert none == pytest.approx(pooled)


def test_equal_rates_are_pooled_almost_wholly():
    assert shrunken_rates([(3, 10), (30, 100), (4, 10)])[2] == pytest.approx(37 / 120, abs=0.01)
