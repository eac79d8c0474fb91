"""Simulates pairs of runs without any change, and counts what the comparison calls a change.

`python -m tests.evaluators.statistics.simulated_runs` prints the table of docs/statistics.md.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from evaluators.statistics.measure_change import ChangeVerdict, MeasureRule, Sample
from evaluators.statistics.regression import compare_headline, decide_overall

HEADLINE = [
    MeasureRule("trial/pass", is_outcome=True),
    MeasureRule("judge/judge"),
    MeasureRule("interaction/first_try_success_rate"),
    MeasureRule("interaction/error_rate", better_is="lower"),
]
DESIGNS = (
    *((3, 3, 3), (5, 5, 5), (8, 2, 2), (10, 3, 3), (20, 3, 3), (50, 3, 3), (100, 1, 1)),
    *((20, 20, 1), (20, 10, 2), (12, 8, 2), (5, 20, 3)),
)
"""Scenarios, and trials of each before and after."""
CHANGED = ((5, 5), (10, 3), (10, 5), (20, 3), (20, 5), (20, 10))
"""Scenarios and trials of each."""
CHANGES: dict[str, tuple[int, float]] = {
    "all −15 points": (0, -0.15),
    "all −30 points": (0, -0.3),
    "one breaks": (1, 0.0),
    "two break": (2, 0.0),
}
"""How many scenarios break, and by how much the others change."""
COMPARISONS = 1_000


class FalseAlarms(NamedTuple):
    """Shares of comparisons, 0 to 1."""

    alarms: float
    """Any headline measure regressed or improved, after correction."""
    uncorrected: float
    """The pass rate's p alone is below 0.05."""
    covered: float
    """The pass rate's 95 % interval contains 0."""
    verdicts: dict[ChangeVerdict, int]


def simulated_run(rng: np.random.Generator, rates: np.ndarray, trials: int) -> tuple[dict[str, Sample], ...]:
    """Return a run's passes, judge scores, first tries and error rates by scenario, which depend on each other."""
    shape = (len(rates), trials)
    passes = (rng.random(shape) < rates[:, None]).astype(float)
    luck = rng.normal(size=shape)
    judge = np.clip(0.3 + 0.5 * passes + 0.1 * luck + 0.1 * rng.normal(size=shape), 0, 1)
    first = np.clip(0.5 + 0.3 * passes + 0.15 * luck, 0, 1)
    errors = np.clip(1 - first + 0.05 * rng.normal(size=shape), 0, 1)
    return tuple(map(samples_of, (passes, judge, first, errors)))


def samples_of(values: np.ndarray) -> dict[str, Sample]:
    """Return the samples of values by scenario and trial."""
    trials = values.shape[1]
    rows = zip(values.mean(axis=1).tolist(), (values.var(axis=1) * trials).tolist(), strict=True)
    return {str(key): Sample(trials, mean, squares) for key, (mean, squares) in enumerate(rows)}


def false_alarms(
    scenarios: int, trials: int, after: int | None = None, comparisons: int = COMPARISONS
) -> FalseAlarms:
    """Compare runs of the same scenarios, whose true pass rates follow Beta(2.4, 0.6), with mean 0.8."""
    rng, verdicts = np.random.default_rng(scenarios), Counter[ChangeVerdict]()
    uncorrected = covered = 0
    for _ in range(comparisons):
        rates = rng.beta(2.4, 0.6, scenarios)
        arms = simulated_run(rng, rates, trials), simulated_run(rng, rates, after or trials)
        changes = compare_headline(list(zip(HEADLINE, *arms, strict=True)), with_power=False)
        passes = changes[0]
        verdicts[decide_overall(changes)] += 1
        uncorrected += (passes.p or 0.0) < 0.05
        covered += (passes.lower or 0.0) <= 0 <= (passes.upper or 0.0)
    alarms = verdicts[ChangeVerdict.REGRESSED] + verdicts[ChangeVerdict.IMPROVED]
    return FalseAlarms(alarms / comparisons, uncorrected / comparisons, covered / comparisons, dict(verdicts))


def share_found(
    scenarios: int, trials: int, broken: int, change: float, comparisons: int = COMPARISONS
) -> float:
    """Return the share of regressions that are called one; true pass rates follow Beta(8, 1.2), with mean 0.87.

    `broken` scenarios fall to 2 %, the others change by `change`.
    """
    rng, found = np.random.default_rng(scenarios * trials), 0
    for _ in range(comparisons):
        rates = rng.beta(8, 1.2, scenarios)
        later = np.clip(rates + change, 0, 1)
        later[:broken] = 0.02
        arms = simulated_run(rng, rates, trials), simulated_run(rng, later, trials)
        found += (
            decide_overall(compare_headline(list(zip(HEADLINE, *arms, strict=True)), with_power=False))
            is ChangeVerdict.REGRESSED
        )
    return found / comparisons


def alarm_share(histories: int, runs: int = 200, scenarios: int = 5, trials: int = 4) -> float:
    """Return the share of runs called regressed or improved in histories without any change, each compared with the last.

    Only the pass rate is simulated: so few scenarios leave the other measures without a test.
    """
    alarms = 0
    for seed in range(histories):
        rng = np.random.default_rng(seed)
        rates = rng.beta(2.4, 0.6, scenarios)
        passes = rng.binomial(trials, rates, size=(runs, scenarios)) / trials
        samples = [{str(key): Sample(trials, float(rate)) for key, rate in enumerate(row)} for row in passes]
        for before, after in pairwise(samples):
            alarms += decide_overall(compare_headline([(HEADLINE[0], before, after)], with_power=False)) in (
                ChangeVerdict.REGRESSED,
                ChangeVerdict.IMPROVED,
            )
    return alarms / histories / (runs - 1)


def main() -> None:
    print("| scenarios × trials | false alarms | pass rate alone, uncorrected | interval contains 0 |")
    print("| --- | --- | --- | --- |")
    for scenarios, trials, after in DESIGNS:
        shares = false_alarms(scenarios, trials, after)
        cells = " | ".join(f"{share:.1%}" for share in shares[:3])
        design = f"{trials}" if trials == after else f"{trials}, then {after}"
        print(f"| {scenarios} × {design} | {cells} |", flush=True)
    print(f"\n| scenarios × trials | {' | '.join(CHANGES)} |\n| {'--- | ' * (len(CHANGES) + 1)}")
    for scenarios, trials in CHANGED:
        found = [share_found(scenarios, trials, *each, comparisons=400) for each in CHANGES.values()]
        print(f"| {scenarios} × {trials} | {' | '.join(f'{share:.0%}' for share in found)} |", flush=True)
    print(f"\n200 histories of 200 runs of 5 × 4: {alarm_share(200):.1%} of the runs regressed or improved.")


if __name__ == "__main__":
    main()
