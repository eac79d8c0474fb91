"""Simulates plans of runs that are compared with their line: is the detectable change found four times out of five?

`python -m tests.evaluators.statistics.simulated_line_plans` prints the table of docs/statistics.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluators.statistics.line import compare_with_line, detectable_against_line
from evaluators.statistics.measure_change import ChangeVerdict, MeasureRule, Sample
from evaluators.statistics.power import expected_rates

PASS = MeasureRule("trial/pass", is_outcome=True, smallest=0.05)
PLANS = 400


class Plan(NamedTuple):
    """A line, and the run that is planned."""

    scenarios: int
    trials: int
    runs: int
    after: int
    drift: float = 0.0
    """Standard deviation of whole runs, 0 to 1."""


DESIGNS = (
    Plan(3, 3, 10, 3),
    Plan(5, 5, 10, 5),
    Plan(10, 5, 5, 5),
    Plan(10, 5, 10, 3),
    Plan(10, 5, 10, 5),
    Plan(10, 5, 10, 5, 0.05),
    Plan(20, 3, 10, 3),
    Plan(50, 3, 10, 3),
)


def planned_and_found(plan: Plan, plans: int = PLANS) -> tuple[float, float]:
    """Return the mean change that plans call detectable, and the share of runs with it that regressed."""
    rng, promised, found = np.random.default_rng(4), 0.0, 0
    for _ in range(plans):
        rates = rng.uniform(0.6, 1, plan.scenarios)
        line = [_passes(rng, rates, plan.trials, plan.drift) for _ in range(plan.runs)]
        totals = [plan.trials * plan.runs] * plan.scenarios
        expected = expected_rates(list(np.sum(line, axis=0)), totals)
        run_rates = [float(run.mean()) / plan.trials for run in line]
        after = [plan.after] * plan.scenarios
        drop = detectable_against_line(expected, totals, after, run_rates, PASS.smallest)
        new = _passes(rng, _lowered(rates, drop), plan.after, plan.drift)
        runs = [_samples(run, plan.trials) for run in line]
        change = compare_with_line([(PASS, runs, _samples(new, plan.after))]).headline[0]
        promised += drop
        found += change.verdict is ChangeVerdict.REGRESSED
    return promised / plans, found / plans


def _passes(rng: np.random.Generator, rates: np.ndarray, trials: int, drift: float) -> np.ndarray:
    return rng.binomial(trials, np.clip(rates + drift * rng.normal(), 0, 1))


def _lowered(rates: np.ndarray, drop: float) -> np.ndarray:
    """Return rates whose mean is lower by `drop`, none below 0."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        is_enough = rates.mean() - np.maximum(rates - middle, 0).mean() >= drop
        low, high = (low, middle) if is_enough else (middle, high)
    return np.maximum(rates - high, 0)


def _samples(passes: np.ndarray, trials: int) -> dict[str, Sample]:
    return {str(key): Sample(trials, count / trials) for key, count in enumerate(passes.tolist())}


def main() -> None:
    print("| line | new run | detectable | found |\n| --- | --- | --- | --- |")
    for plan in DESIGNS:
        promised, found = planned_and_found(plan)
        drift = f", {plan.drift:.0%} of drift" if plan.drift else ""
        print(
            f"| {plan.runs} runs of {plan.scenarios} × {plan.trials}{drift} | {plan.scenarios} × {plan.after}"
            f" | {100 * promised:.0f} points | {found:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
