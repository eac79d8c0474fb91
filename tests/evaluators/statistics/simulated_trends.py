"""Simulates histories of runs, and counts how often change points are marked in them.

`python -m tests.evaluators.statistics.simulated_trends` prints the figures of docs/statistics-appendix.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from evaluators.statistics.change_points import find_changes

TRIALS = 30
"""Trials of each run."""
RATE = 0.85
DRIFT = 0.03
"""Standard deviation of the true pass rate from run to run, without any change."""
STABLE = 40
BEFORE, AFTER = 20, 10
"""Runs before a drop, and runs within which it counts as found."""
HISTORIES = 1_000


class Found(NamedTuple):
    """How often a drop was found."""

    share: float
    delay: float | None
    """Median number of runs from the drop on until it was found, that run included; None if it never was."""


def history(rng: np.random.Generator, rates: Sequence[float]) -> list[float]:
    """Return the pass rates of runs with these true ones and the usual drift."""
    true = np.clip(np.array(rates) + rng.normal(scale=DRIFT, size=len(rates)), 0, 1)
    return [int(each) / TRIALS for each in rng.binomial(TRIALS, true)]


def false_alarms(histories: int = HISTORIES) -> float:
    """Return the share of stable histories in which a change is marked."""
    rng = np.random.default_rng(STABLE)
    return sum(bool(find_changes(history(rng, [RATE] * STABLE))) for _ in range(histories)) / histories


def drops(rate: float, histories: int = HISTORIES) -> Found:
    """Return how often a drop to a rate is marked after any of the next runs, no more than three runs off."""
    rng = np.random.default_rng(round(100 * rate))
    delays = []
    for _ in range(histories):
        rates = history(rng, [RATE] * BEFORE + [rate] * AFTER)
        for seen in range(1, AFTER + 1):
            changes = find_changes(rates[: BEFORE + seen])
            if any(abs(each.at - BEFORE) <= 3 and each.after < each.before for each in changes):
                delays.append(seen)
                break
    return Found(len(delays) / histories, median(delays) if delays else None)


def main() -> None:
    """Print the figures."""
    print(f"stable histories with a mark: {false_alarms():.1%}")
    for rate in (0.7, 0.55):
        found = drops(rate)
        print(f"a drop to {rate:.0%}: {found.share:.0%}, by run {found.delay:.0f}")


if __name__ == "__main__":
    main()
