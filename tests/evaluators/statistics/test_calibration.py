"""A judge compared with people, against published values."""

from __future__ import annotations

import pytest

from evaluators.statistics.calibration import (
    Label,
    allocate,
    calibrate,
    cohen_kappa,
    corrected_pass_rate,
    flip_rate,
    posterior_of,
    weighted_rate,
)
from tests.evaluators.statistics.simulated_judges import JUDGES, Judge, coverage


def labels(both: int, person: int, judge: int, neither: int) -> list[Label]:
    """Return the labels of a 2 × 2 table: both pass, only the person, only the judge, neither."""
    cells = ((both, True, True), (person, True, False), (judge, False, True), (neither, False, False))
    return [Label(one, other) for n, one, other in cells for _ in range(n)]


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        # The worked examples of "Cohen's kappa" in Wikipedia, of grants and of equal agreement.
        ((20, 5, 10, 15), 0.4),
        ((45, 15, 25, 15), 0.1304),
        ((25, 35, 5, 35), 0.2593),
        ((10, 0, 0, 10), 1.0),
        ((0, 10, 10, 0), -1.0),
    ],
)
def test_kappa_of_published_tables(table: tuple[int, int, int, int], kappa: float) -> None:
    found = cohen_kappa(labels(*table))
    assert found is not None and found.value == pytest.approx(kappa, abs=5e-5)
    assert found.lower <= found.value <= found.upper


def test_no_kappa_where_chance_always_agrees() -> None:
    assert cohen_kappa(labels(5, 0, 0, 0)) is None and cohen_kappa([]) is None


def test_rates_have_the_intervals_of_wilson() -> None:
    found = calibrate(labels(81, 182, 0, 15))
    # Newcombe 1998, table I: 81 of 263, 0.2553 to 0.3662; 15 of 148 there, 15 of 15 here.
    rate = found.true_positive
    assert (rate.n, rate.lower, rate.upper) == (
        263,
        pytest.approx(0.2553, abs=1e-4),
        pytest.approx(0.3662, abs=1e-4),
    )
    assert found.true_negative.value == 1.0 and found.passing == 263 and found.failing == 15


def test_weights_undo_a_stratified_sample() -> None:
    # 900 of 1,000 judgings pass; ten of each answer are drawn, and people agree with 9 and with 5.
    passes = [Label(n < 9, True, 90.0) for n in range(10)]
    fails = [Label(n >= 5, False, 10.0) for n in range(10)]
    found = calibrate(passes + fails)
    assert found.agreement.value == pytest.approx((0.9 * 900 + 0.5 * 100) / 1000)
    assert found.true_positive.value == pytest.approx(810 / (810 + 50))


def test_unequal_weights_widen_the_interval() -> None:
    equal = weighted_rate([(True, 1.0)] * 10 + [(False, 1.0)] * 10)
    unequal = weighted_rate([(True, 10.0), *[(True, 1.0)] * 9, (False, 10.0), *[(False, 1.0)] * 9])
    assert equal.value == unequal.value == 0.5
    assert unequal.upper - unequal.lower > equal.upper - equal.lower


@pytest.mark.parametrize(
    ("passing", "failing", "expected"),
    [(30, 30, True), (29, 30, False), (30, 29, False)],
)
def test_calibrated_needs_labels_of_both(passing: int, failing: int, expected: bool) -> None:
    assert calibrate(labels(passing, 0, 0, failing)).is_calibrated(30, 0.7) is expected


def test_calibrated_needs_both_lower_bounds() -> None:
    assert not calibrate(labels(30, 10, 0, 40)).is_calibrated(30, 0.7)
    assert not calibrate(labels(40, 0, 10, 30)).is_calibrated(30, 0.7)


def test_flip_rate_over_pairs_of_a_trial() -> None:
    found = flip_rate([[True, True, False], [True, True], [True]])
    assert (found.n, found.value) == (2, pytest.approx((2 / 3) / 2))
    assert flip_rate([]).value is None


@pytest.mark.parametrize(
    ("n", "passing", "failing", "drawn"), [(60, 100, 100, (30, 30)), (60, 100, 5, (55, 5)), (9, 3, 4, (3, 4))]
)
def test_a_stratified_sample_has_both_answers(
    n: int, passing: int, failing: int, drawn: tuple[int, int]
) -> None:
    found = allocate(n, passing, failing)
    assert (found.passing, found.failing) == drawn


def drawn(both: int, person: int, judge: int, neither: int, passing: float, failing: float) -> list[Label]:
    """Return the labels of a 2 × 2 table, drawn from so many judgings that passed and that failed."""
    weights = {True: passing / (both + judge), False: failing / (person + neither)}
    return [
        Label(each.person, each.judge, weights[each.judge], each.judge)
        for each in labels(both, person, judge, neither)
    ]


def test_false_passes_that_were_not_drawn_widen_the_true_negative_rate() -> None:
    # 60 of 1,900 passes have no false one; 2 % of them would be as many as the 40 right fails.
    found = calibrate(drawn(60, 36, 0, 24, 1900, 100))
    assert (found.true_negative.value, found.true_negative.upper) == (1.0, 1.0)
    assert 0.3 < found.true_negative.lower < 0.6
    assert not found.is_calibrated(24, 0.7)


def test_a_stratum_without_labels_is_unknown() -> None:
    found = calibrate(drawn(30, 0, 0, 1, 900, 900)[:30], {True: 900.0, False: 900.0})
    assert found.true_positive.value == 1.0 and found.true_positive.lower < 0.6


def test_sizes_count_judgings_without_a_label() -> None:
    some = drawn(28, 2, 2, 28, 300, 300)
    more = calibrate(some, {True: 300.0, False: 3000.0}).true_negative
    assert more.lower > calibrate(some, {True: 3000.0, False: 300.0}).true_negative.lower


@pytest.mark.parametrize("n", [5, 20, 29])
def test_few_equal_labels_leave_kappa_open(n: int) -> None:
    found = calibrate(labels(n - n // 2, 0, 0, n // 2)).kappa
    assert found is not None and (found.value, found.upper) == (1.0, 1.0)
    assert found.lower < {5: 0.5, 20: 0.85, 29: 0.9}[n]


def test_a_judged_pass_rate_is_corrected() -> None:
    # TPR 0.9 and TNR 0.8: of 70 % that people pass the judge passes 0.7 * 0.9 + 0.3 * 0.2 = 69 %.
    own = labels(90, 10, 20, 80)
    found = corrected_pass_rate(calibrate(own), posterior_of(own), 690, 1000)
    assert found is not None and (found.n, found.value) == (1000, pytest.approx(0.7))
    alone = weighted_rate([(n < 690, 1.0) for n in range(1000)])
    assert found.upper - found.lower > 2 * (alone.upper - alone.lower)
    assert found.lower < 0.7 < found.upper


@pytest.mark.parametrize(
    "own",
    [labels(10, 10, 10, 10), labels(20, 0, 0, 0), labels(3, 2, 2, 3)],
    ids=["chance", "one answer", "too few"],
)
def test_a_judge_that_may_be_chance_corrects_nothing(own: list[Label]) -> None:
    assert corrected_pass_rate(calibrate(own), posterior_of(own), 50, 100) is None


def test_no_judgings_have_no_corrected_rate() -> None:
    own = labels(90, 10, 20, 80)
    assert corrected_pass_rate(calibrate(own), posterior_of(own), 0, 0) is None


@pytest.mark.simulation
@pytest.mark.parametrize("judge", [JUDGES[0], JUDGES[3], JUDGES[7]], ids=str)
def test_intervals_contain_the_true_rates(judge: Judge) -> None:
    found = coverage(judge, 300)
    # 91 %, less three standard errors of 300 samples.
    assert min(found[:5]) > 0.91 - 0.05
    assert found.known == 1.0


@pytest.mark.simulation
@pytest.mark.parametrize("judge", [JUDGES[1], JUDGES[2]], ids=str)
def test_a_judge_that_passes_half_of_the_failures_is_not_calibrated(judge: Judge) -> None:
    assert coverage(judge, 200).calibrated < 0.01
