"""A judge compared with people, against published values."""

from __future__ import annotations

import pytest

from evaluators.statistics.calibration import Label, calibrate, cohen_kappa, flip_rate
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


@pytest.mark.parametrize(
    ("passing", "failing", "expected"), [(30, 30, True), (29, 30, False), (30, 29, False)]
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


@pytest.mark.parametrize(("n", "is_given"), [(29, False), (30, True)])
def test_few_labels_have_no_kappa(n: int, is_given: bool) -> None:
    assert (calibrate(labels(n - 10, 0, 0, 10)).kappa is not None) is is_given


@pytest.mark.simulation
@pytest.mark.parametrize("judge", [JUDGES[0], JUDGES[1], JUDGES[3]], ids=str)
def test_intervals_contain_the_true_rates(judge: Judge) -> None:
    found = coverage(judge, 300)
    # 91 %, less three standard errors of 300 samples.
    assert min(found[:3]) > 0.91 - 0.05


@pytest.mark.simulation
def test_a_judge_that_passes_half_of_the_failures_is_not_calibrated() -> None:
    assert coverage(JUDGES[2], 200).calibrated < 0.01
