"""Simulates comparisons that are looked at several times: false alarms, what is found and with how many trials.

`python -m tests.evaluators.statistics.simulated_looks` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluators.statistics.looks import (
    ONE_LOOK,
    LookDecision,
    compute_information,
    decide_look,
    look_sizes,
    planned_levels,
    state_of,
    unplanned_levels,
)
from evaluators.statistics.measure_change import ChangeVerdict, Sample
from evaluators.statistics.regression import compare_headline, decide_overall
from evaluators.statistics.significance import Arms
from tests.evaluators.statistics.simulated_runs import HEADLINE

PASS = HEADLINE[0]
CHANGED = (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED)
MIDDLE, NEAR_0, NEAR_1 = (2.4, 0.6), (0.5, 9.5), (9.5, 0.5)
"""Beta distributions of the true pass rates."""


class Plan(NamedTuple):
    """A comparison with a plan of looks."""

    scenarios: int
    first: int
    most: int
    baseline: int = 0
    """Trials of each scenario in a baseline that gets no more; 0: both sides are run together."""


class Found(NamedTuple):
    """Shares of comparisons, and mean trials as a share of the most."""

    regressed: float
    changed: float
    trials: float


PLANS = (
    *(Plan(3, 3, 12), Plan(5, 3, 12), Plan(10, 3, 12), Plan(20, 3, 12), Plan(50, 3, 12)),
    *(Plan(10, 1, 4), Plan(5, 6, 24), Plan(3, 3, 12, 3), Plan(10, 3, 12, 5), Plan(10, 3, 12, 12)),
    *(Plan(20, 2, 8, 20), Plan(50, 3, 12, 3)),
)


CHANGES = (
    ("none", 0, 0.0),
    ("all −15 points", 0, -0.15),
    ("all −30 points", 0, -0.3),
    ("one breaks", 1, 0.0),
)
"""How many scenarios break, and by how much the others change."""


class Side:
    """One side's passes by scenario."""

    def __init__(self, rng: np.random.Generator, rates: np.ndarray) -> None:
        self.rng, self.rates = rng, rates
        self.n = np.zeros(len(rates), int)
        self.passes = np.zeros(len(rates), int)

    def run_up_to(self, trials: int, scenarios: Sequence[int]) -> None:
        """Run trials of these scenarios until each has so many."""
        for key in scenarios:
            more = max(0, trials - int(self.n[key]))
            self.passes[key] += self.rng.binomial(more, self.rates[key])
            self.n[key] += more

    @property
    def samples(self) -> dict[str, Sample]:
        return {str(key): Sample(int(n), float(self.passes[key] / n)) for key, n in enumerate(self.n)}


def looked_at(
    rng: np.random.Generator, plan: Plan, old: np.ndarray, new: np.ndarray
) -> tuple[ChangeVerdict, int]:
    """Return the verdict of one comparison with a plan, and the trials that it took of both sides."""
    everything = range(plan.scenarios)
    before, after = Side(rng, old), Side(rng, new)
    if plan.baseline:
        before.run_up_to(plan.baseline, everything)
    fractions: list[tuple[float, float]] = []
    running: Sequence[int] = everything
    sizes = look_sizes(plan.first, plan.most)
    levels = ONE_LOOK
    for size in sizes:
        after.run_up_to(size, running)
        if not plan.baseline:
            before.run_up_to(size, running)
        state = state_of(
            before.samples, after.samples, PASS.smallest_effect, plan.most, is_paired=not plan.baseline
        )
        assert state is not None
        fractions.append((state.fraction, state.table_fraction))
        levels = planned_levels(fractions)
        look = decide_look(state, levels, is_last=size == sizes[-1])
        if look.decision is not LookDecision.GO_ON:
            break
        running = [int(key) for key in look.undecided]
    verdict = decide_overall(compare_headline([(PASS, before.samples, after.samples)], levels))
    assert (verdict in CHANGED) == (look.decision is LookDecision.DECIDED)
    return verdict, int(after.n.sum() + (0 if plan.baseline else before.n.sum()))


def simulated(
    plan: Plan,
    *,
    beta: tuple[float, float] = MIDDLE,
    broken: int = 0,
    change: float = 0.0,
    comparisons: int = 1_000,
    looks: bool = True,
) -> Found:
    """Return what is found; `broken` scenarios fall to 2 %, the others change by `change`.

    Without `looks`, all trials are run and compared once.
    """
    rng = np.random.default_rng(plan.scenarios * 1000 + plan.most)
    if not looks:
        plan = plan._replace(first=plan.most)
    regressed = changed = trials = 0
    for _ in range(comparisons):
        old = rng.beta(*beta, plan.scenarios)
        new = np.clip(old + change, 0, 1)
        new[:broken] = 0.02
        verdict, own = looked_at(rng, plan, old, new)
        regressed += verdict is ChangeVerdict.REGRESSED
        changed += verdict in CHANGED
        trials += own
    most = plan.scenarios * plan.most * (1 if plan.baseline else 2)
    return Found(regressed / comparisons, changed / comparisons, trials / comparisons / most)


def unplanned_alarms(
    scenarios: int,
    trials: int,
    looks: int = 10,
    comparisons: int = 1_000,
    *,
    spends: bool = True,
    differing: bool = False,
    until_decided: bool = False,
) -> float:
    """Return the share of comparisons without a change that some look calls one, each after as many more trials.

    The later trials are of all scenarios, of those that are `differing`, or of those that a run until a verdict picks.
    """
    rng, alarms = np.random.default_rng(scenarios * trials), 0
    for _ in range(comparisons):
        rates = rng.beta(*MIDDLE, scenarios)
        before, after = Side(rng, rates), Side(rng, rates)
        running: Sequence[int] = range(scenarios)
        seen: list[tuple[float, float]] = []
        for number in range(1, looks + 1):
            for side in (before, after):
                side.run_up_to(number * trials, running)
            seen.append(_information(before, after))
            levels = unplanned_levels(seen) if spends else ONE_LOOK
            most = looks * trials if until_decided else 0
            state = state_of(before.samples, after.samples, PASS.smallest_effect, most, is_paired=True)
            assert state is not None
            look = decide_look(state, levels, is_last=not until_decided)
            if look.decision is LookDecision.DECIDED:
                alarms += 1
            if look.decision in (LookDecision.DECIDED, LookDecision.FUTILE):
                break
            if until_decided:
                running = [int(key) for key in look.undecided]
            elif differing:
                running = np.flatnonzero(before.passes / before.n != after.passes / after.n).tolist()
    return alarms / comparisons


def _information(before: Side, after: Side) -> tuple[float, float]:
    arms = [Arms(0, int(old), 0, int(new)) for old, new in zip(before.n, after.n, strict=True)]
    return compute_information(arms), max(compute_information([each]) for each in arms)


def main() -> None:
    _print_alarms()
    _print_found()
    _print_unplanned()


def _print_alarms() -> None:
    print(
        "| scenarios | looks at | baseline | mean 0.8 | near 0 | near 1 |\n| --- | --- | --- | --- | --- | --- |"
    )
    for plan in PLANS:
        shares = [simulated(plan, beta=beta).changed for beta in (MIDDLE, NEAR_0, NEAR_1)]
        print(f"{_named(plan)} {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


def _print_found() -> None:
    print("\n| scenarios | looks at | baseline | change | found | found without looks | trials |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for plan in (Plan(10, 3, 12), Plan(20, 2, 8), Plan(5, 6, 24), Plan(10, 3, 12, 12), Plan(10, 2, 8, 40)):
        for name, broken, change in CHANGES:
            own, fixed = (
                simulated(plan, beta=(8, 1.2), broken=broken, change=change, comparisons=400, looks=looks)
                for looks in (True, False)
            )
            print(
                f"{_named(plan)} {name} | {own.regressed:.0%} | {fixed.regressed:.0%} | {own.trials:.0%} |",
                flush=True,
            )


def _print_unplanned() -> None:
    kinds: dict[str, dict[str, Any]] = {
        "10 looks at one level": {"spends": False},
        "10 looks from one budget": {},
        "of scenarios that differ": {"differing": True},
        "one look, then until a verdict": {"until_decided": True, "looks": 5},
    }
    print(f"\n| scenarios × trials | {' | '.join(kinds)} |\n| {'--- | ' * (len(kinds) + 1)}")
    for scenarios, trials in ((3, 3), (10, 3), (20, 3)):
        shares = [unplanned_alarms(scenarios, trials, **kind) for kind in kinds.values()]
        print(f"| {scenarios} × {trials} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


def _named(plan: Plan) -> str:
    baseline = f"{plan.baseline} trials each" if plan.baseline else "runs beside"
    sizes = ", ".join(map(str, look_sizes(plan.first, plan.most)))
    return f"| {plan.scenarios} | {sizes} | {baseline} |"


if __name__ == "__main__":
    main()
