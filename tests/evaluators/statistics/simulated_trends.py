"""Simulates histories of runs, and counts how often change points are found in them.

`python -m tests.evaluators.statistics.simulated_trends` prints the table of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from evaluators.statistics.change_points import FEWEST_RUNS, ChangePoint, mean_changes, rate_changes

TRIALS = 30
"""Trials of each run."""
RATE = 0.85
DRIFT = 0.03
"""Standard deviation of the true pass rate from run to run, without any change."""
STABLE = 40
BEFORE, AFTER = 20, 10
"""Runs before a drop, and runs within which it counts as found."""
HISTORIES = 1_000
DRIFTS, LENGTHS = (0.0, 0.03, 0.05), (6, 12, 40)
"""Drifts and numbers of runs of the table of false alarms under drift."""

Detector = Callable[[Sequence[int]], tuple[ChangePoint, ...]]


def _scan(passed: Sequence[int]) -> tuple[ChangePoint, ...]:
    return rate_changes(passed, [TRIALS] * len(passed))


def _segments(passed: Sequence[int]) -> tuple[ChangePoint, ...]:
    return mean_changes([each / TRIALS for each in passed])


DETECTORS: dict[str, Detector] = {"pass rate": _scan, "mean": _segments}


class Found(NamedTuple):
    """How often a drop was found."""

    share: float
    delay: float | None
    """Median number of runs from the drop on until it was found, that run included; None if it never was."""


def history(rng: np.random.Generator, rates: Sequence[float]) -> list[int]:
    """Return the passed trials of runs with these true pass rates and the usual drift."""
    return drifting(rng, rates, TRIALS, DRIFT)


def drifting(rng: np.random.Generator, rates: Sequence[float], trials: int, drift: float) -> list[int]:
    """Return the passed trials of runs with these true pass rates, so many trials and this drift."""
    true = np.clip(np.array(rates) + rng.normal(scale=drift, size=len(rates)), 0, 1)
    return [int(each) for each in rng.binomial(trials, true)]


def false_alarms(detect: Detector, histories: int = HISTORIES) -> float:
    """Return the share of stable histories in which a change is found."""
    rng = np.random.default_rng(STABLE)
    return sum(bool(detect(history(rng, [RATE] * STABLE))) for _ in range(histories)) / histories


def false_alarms_under(trials: int, drift: float, runs: int = STABLE, histories: int = HISTORIES) -> float:
    """Return the share of stable histories with so many trials and this drift in which a pass rate's change is found."""
    rng = np.random.default_rng(trials + runs)
    found = (
        rate_changes(drifting(rng, [RATE] * runs, trials, drift), [trials] * runs) for _ in range(histories)
    )
    return sum(map(bool, found)) / histories


def ever_alarmed(detect: Detector, histories: int = HISTORIES) -> float:
    """Return the share of stable histories in which a change was shown after any of the runs."""
    rng = np.random.default_rng(STABLE)
    drawn = (history(rng, [RATE] * STABLE) for _ in range(histories))
    ends = range(FEWEST_RUNS, STABLE + 1)
    return sum(any(detect(each[:end]) for end in ends) for each in drawn) / histories


def drops(detect: Detector, rate: float, histories: int = HISTORIES) -> Found:
    """Return how often a drop to a rate is found after any of the next runs, no more than three runs off."""
    rng = np.random.default_rng(round(100 * rate))
    delays = []
    for _ in range(histories):
        passed = history(rng, [RATE] * BEFORE + [rate] * AFTER)
        for seen in range(1, AFTER + 1):
            changes = detect(passed[: BEFORE + seen])
            if any(abs(each.at - BEFORE) <= 3 and each.after < each.before for each in changes):
                delays.append(seen)
                break
    return Found(len(delays) / histories, median(delays) if delays else None)


def main() -> None:
    print("| measure | false alarm | shown at any time | drop to 70 % found | drop to 55 % found |")
    print("| --- | --- | --- | --- | --- |")
    for name, detect in DETECTORS.items():
        found = (drops(detect, rate) for rate in (0.7, 0.55))
        cells = [f"{each.share:.0%}, by run {each.delay:.0f}" for each in found]
        print(
            f"| {name} | {false_alarms(detect):.1%} | {ever_alarmed(detect):.0%} | {' | '.join(cells)} |",
            flush=True,
        )
    print(
        f"\n| trials a run | {' | '.join(f'{runs} runs, {drift:.0%}' for drift in DRIFTS for runs in LENGTHS)} |"
    )
    print(f"| {'--- | ' * (len(DRIFTS) * len(LENGTHS) + 1)}")
    for trials in (30, 300):
        shares = [false_alarms_under(trials, drift, runs) for drift in DRIFTS for runs in LENGTHS]
        print(f"| {trials} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
