"""Simulates confirmations with and without a change, and counts what fresh trials confirm.

`python -m tests.evaluators.statistics.simulated_confirmations` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluators.statistics.confirmation import (
    CONCLUSIVE,
    FreshTest,
    Suspected,
    Values,
    confirm_measures,
    design,
)
from evaluators.statistics.measure_change import ChangeVerdict, Sample
from evaluators.statistics.regression import compare_headline, overall
from tests.evaluators.statistics.simulated_runs import HEADLINE

DESIGNS = ((1, 6), (3, 4), (5, 5), (10, 3), (20, 3))
"""Affected scenarios, and fresh trials of each."""
CONFIRMATIONS = 2_000
EARLIER = 10
"""Trials of each scenario in earlier runs, where the old configuration can't run."""
DROP = 0.4
ALERTED = ((5, 5), (10, 5), (20, 3))
"""Scenarios, and trials of each, of runs that raised an alert."""
TRUE_CHANGES: dict[str, tuple[float, int]] = {
    "none": (0.0, 0),
    "all −20 points": (0.2, 0),
    "all −30 points": (0.3, 0),
    "two break": (0.0, 2),
}
"""By how much all scenarios fall, and how many fall to 10 %."""
LIMIT = 100
"""Fresh trials that a project allows by default."""
_MOST_RUNS = 4_000


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


class Alerts(NamedTuple):
    """What became of the alerts of simulated runs."""

    alerts: int
    confirmed: float
    """Shares of the alerts, 0 to 1."""
    open: float
    """Not confirmed, by fresh trials that could not decide."""
    trials: float
    """Fresh trials of a confirmation."""


def alerts_of(scenarios: int, trials: int, drop: float, broken: int, alerts: int = 300) -> Alerts:
    """Return what confirmations say of runs that regressed; true pass rates follow Beta(8, 1.2) before the change."""
    rng, found, confirmed, undecided, used = np.random.default_rng(scenarios * trials), 0, 0, 0, 0
    for _ in range(_MOST_RUNS):
        old = rng.beta(8, 1.2, scenarios)
        new = np.clip(old - drop, 0, 1)
        new[:broken] = 0.1
        a, b = rng.binomial(trials, old), rng.binomial(trials, new)
        (change,) = compare_headline(
            [
                (
                    HEADLINE[0],
                    *({str(k): Sample(trials, n / trials) for k, n in enumerate(side)} for side in (a, b)),
                )
            ],
            with_power=False,
        )
        if overall([change]) is not ChangeVerdict.REGRESSED:
            continue
        found += 1
        whole = change.verdict is ChangeVerdict.REGRESSED
        worse = [k for k in range(scenarios) if (b[k] < a[k] if whole else str(k) in change.broke)]
        suspected = Suspected(
            HEADLINE[0], [Sample(trials, a[k] / trials) for k in worse], float((a - b)[worse].mean()) / trials
        )
        plan = design(suspected, LIMIT // (2 * len(worse)))
        if plan is None:
            undecided += 1
        else:
            fresh = [
                {str(k): (rng.random(plan.trials) < rates[k]).astype(float).tolist() for k in worse}
                for rates in (old, new)
            ]
            is_confirmed = confirm_measures([(HEADLINE[0], fresh[0], fresh[1])])[0].confirms
            confirmed += is_confirmed
            undecided += not is_confirmed and plan.power < CONCLUSIVE
            used += 2 * plan.trials * len(worse)
        if found == alerts:
            break
    return Alerts(found, confirmed / max(1, found), undecided / max(1, found), used / max(1, found))


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
    print(f"\nAlerts confirmed with at most {LIMIT} trials:\n")
    print("| scenarios × trials | true change | alerts | confirmed | could not be confirmed | fresh trials |")
    print("| --- | --- | --- | --- | --- | --- |")
    for scenarios, trials in ALERTED:
        for name, change in TRUE_CHANGES.items():
            became = alerts_of(scenarios, trials, *change)
            cells = f"{became.alerts} | {became.confirmed:.0%} | {became.open:.0%} | {became.trials:.0f}"
            print(f"| {scenarios} × {trials} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
