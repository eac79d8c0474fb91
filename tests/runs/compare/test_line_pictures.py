"""The picture of a line: which runs are in it, and which of them its band is made of."""

from __future__ import annotations

import pytest

from runs.compare.line import RUNS_SHOWN, DrawnRun, line_of_runs

GOOD = DrawnRun(18, 2, 0, "equivalent", "1.0")
LOST = DrawnRun(4, 16, 0, "regressed", "1.1")
OUTAGE = DrawnRun(1, 0, 19, "", "1.0")


def test_runs_without_a_measurement_are_left_out():
    line = line_of_runs([GOOD, OUTAGE, DrawnRun(0, 0, 0, "", ""), GOOD, GOOD, GOOD], "as_before")
    assert line.rates == [0.9] * 4
    assert line.band == pytest.approx(line_of_runs([GOOD] * 4, "as_before").band)


def test_a_run_in_which_every_trial_failed_is_drawn():
    none_passed = DrawnRun(0, 20, 0, "", "1.0")
    line = line_of_runs([none_passed, none_passed, none_passed, none_passed], "as_before")
    assert line.rates == [0.0] * 4 and line.interval[0] == 0.0


def test_runs_since_a_regression_are_no_part_of_its_band():
    line = line_of_runs([*[GOOD] * 5, LOST, LOST], "regressed")
    assert line.since == 5
    assert line.band == pytest.approx(line_of_runs([*[GOOD] * 5, LOST], "regressed").band)
    assert line.band[0] > LOST.rate.share


def test_only_the_newest_regression_is_since():
    line = line_of_runs([GOOD, LOST, *[GOOD] * 4, LOST], "regressed")
    assert line.since == 6
    assert line_of_runs([*[GOOD] * 5, LOST, GOOD], "as_before").since is None


def test_it_shows_the_newest_runs_and_the_last_new_version():
    line = line_of_runs([*[GOOD] * 20, LOST, LOST], "regressed")
    assert len(line.rates) == RUNS_SHOWN
    assert line.flags == {RUNS_SHOWN - 2: "1.1"}


@pytest.mark.parametrize("runs", [[], [GOOD, DrawnRun(0, 0, 20, "", "1.0")]])
def test_nothing_is_drawn_where_the_newest_has_no_result(runs):
    assert line_of_runs(runs, "errors") is None
