"""Simulates A/A pairs, and counts how often the interval of their rate contains the true one.

`python -m tests.evaluators.statistics.simulated_aa_pairs` prints the table of docs/statistics.md.
"""

from __future__ import annotations

import os
from collections import Counter

import django
import numpy as np

SERIES = 1_500
BASELINES = ("pinned", "previous run", "pinned again every 5 runs")
DESIGNS = ((5, 20), (20, 10), (20, 40))
"""Scenarios and pairs."""


def pairs_of(baselines: str, pairs: int) -> list[tuple[int, int]]:
    """Return the runs of each pair, the baseline first."""
    if baselines == "pinned":
        return [(0, run) for run in range(1, pairs + 1)]
    if baselines == "previous run":
        return [(run - 1, run) for run in range(1, pairs + 1)]
    return [(run // 5 * 5, run) for run in range(1, pairs + pairs // 4 + 1) if run % 5]


def covered(baselines: str, scenarios: int, pairs: int, series: int = SERIES) -> tuple[float, float]:
    """Return how often the interval contains the true rate, counting baselines and counting pairs.

    True pass rates follow Beta(2.4, 0.6); one trial of each scenario.
    """
    # It has models, so it is imported once Django is set up.
    from runs.compare.aa_pairs import AaRates

    rng = np.random.default_rng(scenarios * pairs)
    compared = pairs_of(baselines, pairs)
    own = Counter(before for before, _ in compared).values()
    independent = len(compared) ** 2 / sum(n * n for n in own)
    counted = (
        AaRates(len(compared), independent=independent),
        AaRates(len(compared), independent=len(compared)),
    )
    hits = [0, 0]
    for _ in range(series):
        rates = rng.beta(2.4, 0.6, scenarios)
        truth = float((2 * rates * (1 - rates)).mean())
        passed = rng.random((max(after for _, after in compared) + 1, scenarios)) < rates
        differing = sum(int((passed[before] != passed[after]).sum()) for before, after in compared)
        for n, each in enumerate(counted):
            interval = each.interval(differing, len(compared) * scenarios)
            hits[n] += interval.lower <= truth <= interval.upper
    return hits[0] / series, hits[1] / series


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    django.setup()
    print("| baseline | scenarios, pairs | interval contains the rate | counting pairs |")
    print("| --- | --- | --- | --- |")
    for baselines in BASELINES:
        for scenarios, pairs in DESIGNS:
            shares = " | ".join(f"{share:.1%}" for share in covered(baselines, scenarios, pairs))
            print(f"| {baselines} | {scenarios}, {pairs} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
