"""How the soak computes growth, how long it takes, and when it runs."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import BENCHMARKS, chosen
from tests.bench.soak import DEFAULT_MINUTES, growth, length


def test_growth_of_the_first_half_does_not_count():
    assert growth([50, 80, 100, 100, 100]) == 0


def test_growth_is_the_slope_of_the_second_half():
    assert growth([0, 0, 100, 100.5, 101]) == pytest.approx(0.5)


def test_the_shortest_soak_has_a_growth():
    assert growth([100, 110, 111]) == pytest.approx(1)


def test_the_soak_takes_two_hours_or_what_is_asked():
    assert (length(""), length("6")) == (DEFAULT_MINUTES, 6) == (120, 6)


@pytest.mark.parametrize("text", ["1", "0", "-6", "six", "1.5", "²"])
def test_a_wrong_length_is_refused_in_a_sentence(text):
    with pytest.raises(SystemExit, match="Give a whole number of minutes, 2 or more"):
        length(text)


def test_the_long_ones_run_only_when_named():
    assert set(BENCHMARKS) - set(chosen([])) == {"million", "search", "soak"}
    assert chosen(["soak"]) == ["soak"]
