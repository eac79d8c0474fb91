"""Simulates confirmations with and without a change, and counts what fresh trials confirm.

`python -m tests.evaluators.simulated_confirmations` prints the table of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluators.confirmation import FreshTest, Values, confirm_measures
from tests.evaluators.simulated_runs import HEADLINE

DESIGNS = ((1, 6), (3, 4), (5, 5), (10, 3), (20, 3))
"""Affected scenarios, and fresh trials of each."""
CONFIRMATIONS = 2_000
EARLIER = 10
"""Trials of each scenario in earlier runs, where the old configuration can't run."""
DROP = 0.4


def fresh_values(rng: np.random.Generator, rates: np.ndarray, trials: int) -> tuple[Values, Values]:
    """Return passes and first-try rates of fresh trials by scenario, which depend on each other."""
    passes: dict[str, Sequence[float]] = {}
    first: dict[str, Sequence[float]] = {}
    for key, rate in enumerate(rates):
        own = (rng.random(trials) < rate).astype(float)
        passes[str(key)] = own.tolist()
        first[str(key)] = np.clip(0.5 + 0.3 * own + 0.15 * rng.normal(size=trials), 0, 1).tolist()
    return passes, first


def tests_of(
    rng: np.random.Generator, scenarios: int, trials: int, drop: float, earlier: int = 0
) -> list[FreshTest]:
    """Return the tests of one confirmation, whose true pass rates follow Beta(2.4, 0.6) before a drop."""
    rates = rng.beta(2.4, 0.6, scenarios)
    old = fresh_values(rng, rates, earlier or trials)
    new = fresh_values(rng, np.clip(rates - drop, 0, 1), trials)
    return confirm_measures(list(zip((HEADLINE[0], HEADLINE[2]), old, new, strict=True)))


def confirmed_share(
    scenarios: int, trials: int, *, drop: float = 0.0, earlier: int = 0, confirmations: int = CONFIRMATIONS
) -> float:
    """Return the share of confirmations, 0 to 1, in which fresh trials confirm a regression."""
    rng = np.random.default_rng(scenarios * 1_000 + trials)
    found = (tests_of(rng, scenarios, trials, drop, earlier) for _ in range(confirmations))
    return sum(any(each.confirms for each in tests) for tests in found) / confirmations


def main() -> None:
    print("| scenarios × trials | no change | no change, earlier runs | 40 points worse |")
    print("| --- | --- | --- | --- |")
    for scenarios, trials in DESIGNS:
        shares = (
            confirmed_share(scenarios, trials),
            confirmed_share(scenarios, trials, earlier=EARLIER),
            confirmed_share(scenarios, trials, drop=DROP),
        )
        print(f"| {scenarios} × {trials} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
