"""Tests of two samples: against published examples, scipy and statsmodels, and by counting."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluators.statistics.descriptive import mean_difference, newcombe_interval
from evaluators.statistics.significance import (
    Arms,
    Values,
    adjust_holm,
    benjamini_hochberg,
    boschloo_p,
    jeffreys_variance,
    t_interval,
    within_moments_p,
    within_scenario_p,
)

# statsmodels takes long to import, so the tests do it: every process collects this file.
pytestmark = pytest.mark.spec("llm-tool-test", "Significance over runs (left open there)")


def test_trials_permuted_in_one_scenario_give_fishers_p():
    table = [[9, 1], [3, 7]]
    assert within_scenario_p([Arms(9, 10, 3, 10)]) == pytest.approx(stats.fisher_exact(table).pvalue)


def test_trials_are_permuted_within_their_scenario_only():
    scenarios = [Arms(3, 3, 1, 3), Arms(2, 3, 0, 3), Arms(3, 4, 1, 2)]
    one = [
        {k: stats.hypergeom.pmf(k, n + m, a + b, m) for k in range(m + 1)}
        for a, n, b, m in ((3, 3, 1, 3), (2, 3, 0, 3), (3, 4, 1, 2))
    ]
    total = 0.0
    observed = abs(sum(each.difference for each in scenarios))
    for ks in product(*one):
        sums = [
            k / each.trials_after - (each.before + each.after - k) / each.trials_before
            for k, each in zip(ks, scenarios, strict=True)
        ]
        if abs(sum(sums)) >= observed - 1e-9:
            total += float(np.prod([chances[k] for chances, k in zip(one, ks, strict=True)]))
    assert within_scenario_p(scenarios) == pytest.approx(total)


def test_awkward_trial_counts_are_permuted_by_draws():
    scenarios = [Arms(n - 4, n, 3, m) for n, m in ((7, 11), (13, 17), (19, 23), (29, 31))]
    assert within_scenario_p(scenarios) == within_scenario_p(scenarios) < 0.001
    assert within_scenario_p([Arms(5, n, 5, n) for n in (7, 11, 13, 17, 19, 23)]) == 1.0


def test_the_variance_of_permuted_trials_is_the_hypergeometric_one():
    arms = Arms(4, 5, 1, 3)
    chances = stats.hypergeom(8, 5, 3)
    differences = [k / 3 - (5 - k) / 5 for k in range(4)]
    expected = sum(chances.pmf(k) * each**2 for k, each in enumerate(differences))
    assert arms.variance == pytest.approx(expected)


@pytest.mark.parametrize("arms", [(0, 0, 1, 1), (3, 2, 1, 1), (1, 1, -1, 1)])
def test_a_rate_that_is_none_is_refused(arms):
    with pytest.raises(ValueError, match="is not a rate"):
        Arms(*arms)


@pytest.mark.parametrize(("worse", "better"), [(0, 0), (5, 0), (7, 2), (3, 9), (6, 6)])
def test_single_trials_are_compared_as_mcnemar_does(worse, better):
    from statsmodels.stats.contingency_tables import mcnemar

    expected = mcnemar([[10, worse], [better, 4]], exact=True).pvalue
    single = [Arms(1, 1, 0, 1)] * worse + [Arms(0, 1, 1, 1)] * better
    assert within_scenario_p(single) == pytest.approx(expected)


def test_a_result_as_extreme_counts_half_in_the_mid_p():
    arms = [Arms(5, 5, 2, 5), Arms(4, 5, 3, 5)]
    chances = [stats.hypergeom(10, 7, 5), stats.hypergeom(10, 7, 5)]
    found = {}
    for first in range(2, 6):
        for second in range(2, 6):
            sum_of = first + second - (7 - first) - (7 - second)
            found[sum_of] = found.get(sum_of, 0.0) + chances[0].pmf(first) * chances[1].pmf(second)
    observed = (2 - 5) + (3 - 4)
    both = sum(p for each, p in found.items() if abs(each) > abs(observed))
    both += sum(p for each, p in found.items() if abs(each) == abs(observed)) / 2
    assert within_scenario_p(arms, mid=True) == pytest.approx(both)


def test_thousands_of_single_trials_have_a_p():
    assert within_scenario_p([Arms(1, 1, 0, 1)] * 515 + [Arms(0, 1, 1, 1)] * 520, mid=True) > 0.8


VALUES = st.lists(st.floats(0, 1), min_size=2, max_size=5)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4))
def test_moments_are_those_of_all_permutations(scenarios):
    variance = 0.0
    for before, after in scenarios:
        pooled = [*before, *after]
        chosen = [sum(each) for each in combinations(pooled, len(after))]
        differences = [each / len(after) - (sum(pooled) - each) / len(before) for each in chosen]
        variance += float(np.var(differences))
    found = sum(values(*each).permuted_variance for each in scenarios)
    assert found == pytest.approx(variance, abs=1e-9)


def values(before, after):
    return Values(
        *(len(before), float(np.mean(before)), float(np.var(before)) * len(before)),
        *(len(after), float(np.mean(after)), float(np.var(after)) * len(after)),
    )


def test_one_scenario_of_values_is_compared_as_student_does():
    before, after = [0.1, 0.4, 0.35, 0.8], [0.9, 0.7, 0.85]
    expected = stats.ttest_ind(before, after).pvalue
    assert within_moments_p([values(before, after)]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "after", "p"),
    [([0.5, 0.5], [0.5, 0.5], 1.0), ([0.5], [0.9], 1.0), ([0.0, 0.0], [1.0, 1.0], 1 / 3)],
)
def test_values_that_dont_vary(before, after, p):
    assert within_moments_p([values(before, after)]) == pytest.approx(p, abs=1e-9)
    assert within_moments_p([]) == 1.0


def test_many_trials_of_one_scenario_are_compared_as_fisher_does():
    arms = Arms(950, 1000, 921, 1000)
    fisher = stats.fisher_exact([[921, 950], [79, 50]], "less").pvalue
    assert boschloo_p(arms) == pytest.approx(fisher * 2)
    # Below the limit Boschloo's p is a little smaller, so the step is not a jump.
    near, far = boschloo_p(Arms(190, 200, 178, 200)), boschloo_p(Arms(191, 201, 179, 201))
    assert near < far < 1.3 * near


@pytest.mark.parametrize(("before", "after"), [(1, 1), (3, 2), (2, 7), (10, 10)])
def test_arms_wholly_apart_have_the_p_that_scipy_finds(before, after):
    table = [[0, before], [after, 0]]
    expected = pytest.approx(stats.boschloo_exact(table, "two-sided").pvalue, rel=1e-3)
    assert boschloo_p(Arms(before, before, 0, after)) == expected
    assert boschloo_p(Arms(0, before, after, after)) == expected


def test_one_scenario_is_compared_as_boschloo_does():
    fisher = [
        [stats.fisher_exact([[j, i], [6 - j, 5 - i]], "less").pvalue for j in range(7)] for i in range(6)
    ]
    observed = fisher[5][2]
    # The highest chance, over all true rates, of a table whose Fisher's p is as low.
    chances = [
        sum(
            stats.binom.pmf(i, 5, rate) * stats.binom.pmf(j, 6, rate)
            for i in range(6)
            for j in range(7)
            if fisher[i][j] <= observed + 1e-9
        )
        for rate in np.linspace(0, 1, 401)
    ]
    assert boschloo_p(Arms(5, 5, 2, 6)) == pytest.approx(2 * max(chances), abs=0.001)
    assert boschloo_p(Arms(5, 5, 5, 5)) == 1.0


def test_corrections_equal_those_of_statsmodels():
    from statsmodels.stats.multitest import multipletests

    ps = [0.001, 0.2, 0.013, 0.04, 0.012, 0.9]
    assert adjust_holm(ps) == pytest.approx(multipletests(ps, method="holm")[1])
    assert benjamini_hochberg(ps) == pytest.approx(multipletests(ps, method="fdr_bh")[1])
    assert adjust_holm([]) == benjamini_hochberg([]) == []


def test_holms_own_example_rejects_only_the_first():
    # Holm 1979: with n tests the smallest p is multiplied by n, the next by n - 1, and none may fall below the last.
    assert adjust_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(
    ("counts", "lower", "upper"),
    [
        ((48, 80, 56, 70), 0.0524, 0.3339),
        ((3, 10, 9, 10), 0.1705, 0.8090),
        ((0, 29, 5, 56), -0.0381, 0.1926),
        ((0, 20, 0, 10), -0.1611, 0.2775),
        ((0, 10, 10, 10), 0.6075, 1.0),
    ],
)
def test_newcombes_table_of_differences_is_met(counts, lower, upper):
    assert newcombe_interval(*counts) == pytest.approx((lower, upper), abs=0.0006)


def test_newcombes_interval_equals_that_of_statsmodels():
    from statsmodels.stats.proportion import confint_proportions_2indep

    expected = confint_proportions_2indep(14, 20, 17, 20, compare="diff", method="newcomb")
    assert newcombe_interval(17, 20, 14, 20) == pytest.approx(expected, abs=1e-4)


def test_the_mean_of_one_difference_has_newcombes_interval():
    assert mean_difference([(3, 10, 9, 10)]) == pytest.approx(newcombe_interval(3, 10, 9, 10))
    with pytest.raises(ValueError, match="no scenarios"):
        mean_difference([])


def test_the_interval_of_a_mean_difference_covers_it():
    rng = np.random.default_rng(1)
    before, after = np.array([0.9, 0.5, 0.8, 0.3]), np.array([0.7, 0.6, 0.4, 0.3])
    truth, covered = float((after - before).mean()), 0
    for _ in range(1_000):
        old, new = rng.binomial(10, before).tolist(), rng.binomial(10, after).tolist()
        low, high = mean_difference([(a, 10, b, 10) for a, b in zip(old, new, strict=True)])
        covered += low <= truth <= high
    assert covered >= 930


def test_students_interval_equals_scipys():
    nine = [0.2, -0.1, 0.4, 0.3, 0.1, 0.5, -0.2, 0.3, 0.6]
    expected = stats.ttest_1samp(nine, 0).confidence_interval(0.9)
    assert t_interval(nine, 0.9) == pytest.approx((expected.low, expected.high))


def test_an_interval_is_never_narrower_than_trials_allow():
    low, high = t_interval([0.0] * 10, 0.9, least_variance=0.01)
    assert high == pytest.approx(stats.t.ppf(0.95, 9) * 0.1)
    assert low == -high


def test_an_interval_needs_two_differences():
    with pytest.raises(ValueError, match="At least 2 are needed"):
        t_interval([0.1], 0.95)


def test_no_scenario_is_certain():
    assert jeffreys_variance(3, 3) > 0
    assert jeffreys_variance(500, 1000) == pytest.approx(0.25, rel=0.01)


def test_moments_are_never_surer_than_the_most_extreme_permutations():
    # Four values can be arranged in six ways, two of which are as far apart as these.
    even = [Values(2, 0.9, 0.0, 2, 0.8, 0.0)]
    assert within_moments_p(even) == pytest.approx(2 / 6)
    uneven = [Values(3, 0.9, 0.0, 1, 0.2, 0.0)]
    assert within_moments_p(uneven) == pytest.approx(1 / 4)
    assert within_moments_p(even * 12) < 1e-6
