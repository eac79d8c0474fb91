"""What a plan calls detectable against a line."""

from __future__ import annotations

from evaluators.statistics.line import detectable_against_line

RATES = [0.85] * 10


def test_more_trials_and_a_longer_line_detect_less() -> None:
    def detectable(runs: int, after: int) -> float:
        return detectable_against_line(RATES, [after] * 10, ([0.84, 0.86] * 5)[:runs], 0.05)

    assert detectable(10, 10) < detectable(10, 5) < detectable(5, 5)


def test_a_line_that_drifts_detects_more_only() -> None:
    few = detectable_against_line(RATES, [5] * 10, [0.84, 0.86] * 5, 0.05)
    assert few < detectable_against_line(RATES, [5] * 10, [0.7, 1.0] * 5, 0.05)


def test_a_change_below_the_smallest_effect_is_never_promised() -> None:
    assert detectable_against_line([0.9] * 50, [100] * 50, [0.9] * 10, 0.2) > 0.2
