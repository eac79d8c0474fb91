import pytest
from scipy.stats import binomtest

from evaluators.statistics import wilson


@pytest.mark.parametrize(("passes", "total"), [(0, 1), (1, 1), (0, 10), (7, 10), (10, 10), (81, 263)])
def test_the_interval_is_wilsons(passes, total):
    # The deviations that scipy takes for 95 %, which 1.96 rounds.
    found = wilson(passes, total, z=1.959963984540054)
    published = binomtest(passes, total).proportion_ci(method="wilson")
    assert (found.lower, found.upper) == pytest.approx((published.low, published.high), abs=1e-12)


def test_the_center_is_pulled_towards_one_half():
    assert wilson(50, 100).center == pytest.approx(0.5)
    assert 0.5 < wilson(9, 10).center < 0.9


def test_fewer_deviations_make_a_narrower_interval():
    narrow, wide = wilson(5, 10, z=1), wilson(5, 10)
    assert narrow.upper - narrow.lower < wide.upper - wide.lower


def test_without_trials_everything_is_possible():
    found = wilson(0, 0)
    assert (found.lower, found.upper) == (0.0, 1.0)


@pytest.mark.parametrize(("passes", "total"), [(3, 2), (-1, 2), (0, -1)])
def test_it_refuses_what_is_no_rate(passes, total):
    with pytest.raises(ValueError, match="is no rate"):
        wilson(passes, total)
