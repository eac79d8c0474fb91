"""Simulates runs without any change whose trials are uneven or missing, or whose costs have heavy tails.

`python -m tests.evaluators.statistics.simulated_uneven_runs` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evaluators.statistics.measure_change import ChangeVerdict, MeasureRule, Sample, Scale
from evaluators.statistics.regression import compare_headline, compare_measures, decide_overall
from tests.evaluators.statistics.simulated_runs import HEADLINE

Counts = Callable[[np.random.Generator], np.ndarray]
UNEVEN: Mapping[str, Counts] = {
    "20 × 1 to 8": lambda rng: rng.integers(1, 9, 20),
    "10 × 3, a fifth missing": lambda rng: rng.binomial(3, 0.8, 10),
    "20 × 5, a fifth missing": lambda rng: rng.binomial(5, 0.8, 20),
}
"""The trials of each scenario of a run."""
RATES: Mapping[str, tuple[float, float]] = {
    "mean 0.8": (2.4, 0.6),
    "near 0 or 1": (0.25, 0.25),
    "near 1": (19, 1),
}
"""Beta distributions of the true pass rates."""
COST = MeasureRule("trial/cost_usd", better_is="lower", scale=Scale.RELATIVE, smallest_effect=0.1)
TAILS = (0.8, 1.3)
"""Standard deviations of the logarithm of a trial's cost."""
COSTS = ((20, 10, 3), (20, 20, 1), (10, 5, 5))
"""Scenarios, and trials of each before and after."""
COMPARISONS = 1_000
CHANGED = (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED)


def uneven_alarms(design: str, rates: str, comparisons: int = COMPARISONS) -> float:
    """Return the share of unchanged runs that are called regressed or improved, by pass rate and judge score."""
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(comparisons):
        before, after = UNEVEN[design](rng), UNEVEN[design](rng)
        true = rng.beta(*RATES[rates], len(before))
        arms = _run(rng, true, before), _run(rng, true, after)
        measures = list(zip(HEADLINE[:2], *arms, strict=True))
        alarms += decide_overall(compare_headline(measures, with_power=False)) in CHANGED
    return alarms / comparisons


def _run(rng: np.random.Generator, rates: np.ndarray, counts: np.ndarray) -> tuple[dict[str, Sample], ...]:
    passes, judge = {}, {}
    for key, (rate, n) in enumerate(zip(rates, counts, strict=True)):
        if n:
            passed = (rng.random(n) < rate).astype(float)
            passes[str(key)] = _sample(passed)
            judge[str(key)] = _sample(np.clip(0.3 + 0.5 * passed + 0.1 * rng.normal(size=n), 0, 1))
    return passes, judge


def _sample(values: np.ndarray) -> Sample:
    return Sample(len(values), float(values.mean()), float(values.var() * len(values)))


def cost_alarms(design: Sequence[int], tail: float, comparisons: int = COMPARISONS) -> float:
    """Return the share of unchanged lognormal costs that are called a change."""
    scenarios, before, after = design
    rng, alarms = np.random.default_rng(2), 0
    for _ in range(comparisons):
        levels = rng.normal(size=scenarios)
        arms = [
            {str(key): _sample(np.exp(level + tail * rng.normal(size=n))) for key, level in enumerate(levels)}
            for n in (before, after)
        ]
        (change,) = compare_measures([(COST, *arms)])
        alarms += change.p_corrected is not None and change.p_corrected < 0.05
    return alarms / comparisons


def main() -> None:
    print(f"| scenarios × trials | {' | '.join(RATES)} |\n| {'--- | ' * (len(RATES) + 1)}")
    for design in UNEVEN:
        cells = " | ".join(f"{uneven_alarms(design, rates):.1%}" for rates in RATES)
        print(f"| {design} | {cells} |", flush=True)
    print(f"\n| costs | {' | '.join(f'σ = {tail}' for tail in TAILS)} |\n| {'--- | ' * (len(TAILS) + 1)}")
    for scenarios, before, after in COSTS:
        cells = " | ".join(f"{cost_alarms((scenarios, before, after), tail):.1%}" for tail in TAILS)
        print(f"| {scenarios} × {before}, then {after} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
