"""Simulates months of nights by the functions that decide: lines, windows, fresh trials, freezing and fixes.

`python -m tests.evaluators.statistics.simulated_nights` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from math import log

import numpy as np

from evaluators.statistics.line import (
    MOST_RUNS,
    RECENT,
    Line,
    compare_amount,
    compare_with_line,
    is_confirmed_by,
)
from evaluators.statistics.measure_change import (
    ChangeVerdict,
    MeasureChange,
    MeasureRule,
    Sample,
    Scale,
    pool_samples,
)
from evaluators.statistics.regression import compare_headline, decide_overall
from evaluators.statistics.retest import (
    IN_TURN,
    Passes,
    RetestOutcome,
    choose_fallen,
    decide_retest,
    has_fallen,
    is_fixed,
    plan_batch,
    plan_in_turn,
)

HEADLINE = (
    MeasureRule("trial/pass", is_outcome=True),
    MeasureRule("judge/judge"),
    MeasureRule("interaction/first_try_success_rate"),
    MeasureRule("interaction/error_rate", better_is="lower"),
)
COST = MeasureRule("trial/cost_usd", better_is="lower", scale=Scale.RELATIVE, smallest_effect=0.1)
GOOD_NIGHTS = 3
"""Nights in a row that aren't red after which an undecided alert's line goes on."""
Rates = Callable[[np.random.Generator, int], np.ndarray]
Run = tuple[dict[str, Sample], ...]


def usual(rng: np.random.Generator, scenarios: int) -> np.ndarray:
    """Return usual pass rates, with a mean of 0.87."""
    return rng.beta(8, 1.2, scenarios)


def at(rate: float) -> Rates:
    """Return equal pass rates."""
    return lambda _, scenarios: np.full(scenarios, rate)


@dataclass(frozen=True)
class Nights:
    """A month to simulate."""

    scenarios: int
    trials: int = 3
    nights: int = 30
    earlier: int = RECENT
    """Runs of the line before the first night."""
    day: float = 0.0
    """Standard deviation of all rates from night to night, 0 to 1."""
    alike: float = 0.0
    """How alike the trials of a scenario are in one night (intraclass correlation)."""
    rates: Rates = usual
    change: Callable[[np.ndarray, int], np.ndarray] = lambda rates, _: rates
    """The true rates on a night, from 0."""
    broken: int = 0
    """Scenarios that pass in at least nine of ten trials before they break."""
    retests: bool = True


@dataclass
class Month:
    """What came of it."""

    first_reds: int = 0
    """Red nights after one that wasn't."""
    red: list[bool] = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)
    """The first night on which each scenario was named, from 0."""
    fresh: int = 0
    """Fresh trials."""


class _Project:
    """One suite on its line."""

    def __init__(self, rng: np.random.Generator, plan: Nights) -> None:
        self.rng, self.plan = rng, plan
        self.rates = plan.rates(rng, plan.scenarios)
        self.rates[: plan.broken] = np.maximum(self.rates[: plan.broken], 0.9)
        self.line = [self.run(self.night(self.rates)) for _ in range(plan.earlier)]
        self.pending: list[Run] = []
        self.named: dict[str, Passes] = {}
        """With its trials since it was named."""
        self.calm: dict[str, int] = {}
        self.fixed: dict[str, int] = {}
        self.suspected = self.confirmed = False
        self.good = 0

    def night(self, rates: np.ndarray) -> np.ndarray:
        """Return the true rates of one night."""
        shifted = np.clip(rates + self.rng.normal(0, self.plan.day), 1e-6, 1 - 1e-6)
        if not self.plan.alike:
            return shifted
        size = (1 - self.plan.alike) / self.plan.alike
        return self.rng.beta(shifted * size, (1 - shifted) * size)

    def run(self, rates: np.ndarray) -> Run:
        """Return a run's passes, judge scores, first tries and error rates by scenario, which depend on each other."""
        shape = (len(rates), self.plan.trials)
        passes = (self.rng.random(shape) < rates[:, None]).astype(float)
        luck = self.rng.normal(size=shape)
        judge = np.clip(0.3 + 0.5 * passes + 0.1 * luck + 0.1 * self.rng.normal(size=shape), 0, 1)
        first = np.clip(0.5 + 0.3 * passes + 0.15 * luck, 0, 1)
        errors = np.clip(1 - first + 0.05 * self.rng.normal(size=shape), 0, 1)
        return tuple(map(_samples, (passes, judge, first, errors)))

    def compare(self, run: Run) -> list[MeasureChange]:
        """Return the headline of a run against the line."""
        earlier = [*self.line, *self.pending][-RECENT - len(self.pending) :][::-1]
        since = {key: nights + 1 for key, nights in self.fixed.items()}
        measures = [
            (rule, Line([each[place] for each in earlier], len(self.pending), since), run[place])
            for place, rule in enumerate(HEADLINE)
        ]
        compared = compare_with_line(measures)
        self.broke = {
            key for key, each in compared.scenarios.items() if each.verdict is ChangeVerdict.REGRESSED
        }
        return compared.headline

    def old(self) -> dict[str, Passes]:
        """Return the old trials of each scenario."""
        runs = [run[0] for run in self.line[-MOST_RUNS:]]
        pooled = {key: reduce(pool_samples, (run[key] for run in runs if key in run)) for key in runs[-1]}
        return {key: _passes(each) for key, each in pooled.items()}

    def retest(self, run: Run, rates: np.ndarray) -> tuple[dict[str, Passes], int]:
        """Return the scenarios that fresh trials name, with these, and how many trials that took."""
        new, old = {key: _passes(each) for key, each in run[0].items()}, self.old()
        fallen = [
            key
            for key in choose_fallen(new, old, seed=int(self.rng.integers(1 << 30)))
            if key not in self.named
        ]
        named: dict[str, Passes] = {}
        spent, most = 0, self.plan.scenarios * self.plan.trials
        while fallen:
            batch = plan_batch(fallen, old, most - spent, is_first=not spent)
            fallen = fallen[len(batch) :]
            hits = 0
            for key, trials, level in batch:
                fresh = Passes(int(self.rng.binomial(trials, rates[int(key)])), trials)
                spent += trials
                if decide_retest(fresh, old[key], level) is RetestOutcome.NAMED:
                    named[key], hits = fresh, hits + 1
            if not batch or hits < len([each for each in batch if each.trials]):
                break
        return named, spent


def simulate(rng: np.random.Generator, plan: Nights) -> Month:
    """Return one month."""
    project, month = _Project(rng, plan), Month()
    for night in range(plan.nights):
        _live_night(project, month, night)
    return month


def _live_night(project: _Project, month: Month, night: int) -> None:
    rates = project.night(project.plan.change(project.rates.copy(), night))
    run, was_frozen = project.run(rates), bool(project.pending)
    fresh, spent = project.retest(run, rates) if project.plan.retests else ({}, 0)
    headline = project.compare(run)
    month.fresh += spent
    # A scenario that is fixed tonight begins anew.
    broke = project.broke - project.named.keys()
    _fix(project, month, run, rates)
    for key in fresh.keys() | broke:
        project.named[key] = fresh.get(key, Passes(0, 0))
        month.named.setdefault(key, night)
    red = [change for change in headline if change.verdict is ChangeVerdict.REGRESSED]
    if project.suspected:
        # The next run decides.
        project.suspected, project.confirmed = False, bool(red) or is_confirmed_by(headline[0])
    elif red and not project.confirmed:
        project.confirmed = any(each.window > 1 for each in red)
        project.suspected = not project.confirmed
    for key, since in project.named.items():
        own = _passes(run[0][key])
        project.named[key] = Passes(since.passed + own.passed, since.trials + own.trials)
    is_red = bool(project.named or red or project.suspected)
    month.red.append(is_red)
    month.first_reds += is_red and not was_frozen
    project.fixed = {key: nights + 1 for key, nights in project.fixed.items()}
    project.good = 0 if is_red else project.good + 1
    project.pending.append(run)
    if project.confirmed and project.good >= GOOD_NIGHTS:
        project.confirmed = False
    if not (project.named or project.suspected or project.confirmed):
        project.line += project.pending
        project.pending = []


def _fix(project: _Project, month: Month, run: Run, rates: np.ndarray) -> None:
    old = project.old()
    for key, since in list(project.named.items()):
        own = _passes(run[0][key])
        project.calm[key] = 0 if has_fallen(own, old[key]) else project.calm.get(key, 0) + 1
        fresh = Passes(0, 0)
        if own.rate >= 0.5:
            fresh = Passes(int(project.rng.binomial(IN_TURN, rates[int(key)])), IN_TURN)
            month.fresh += IN_TURN
        if is_fixed(fresh, since) or project.calm[key] >= GOOD_NIGHTS:
            del project.named[key]
            project.fixed[key], project.calm[key] = 0, 0
            # What ran while it was broken is no part of its line.
            for earlier in project.pending:
                earlier[0].pop(key, None)


def _samples(values: np.ndarray) -> dict[str, Sample]:
    trials = values.shape[1]
    rows = zip(values.mean(axis=1).tolist(), (values.var(axis=1) * trials).tolist(), strict=True)
    return {str(key): Sample(trials, mean, squares) for key, (mean, squares) in enumerate(rows)}


def _passes(sample: Sample) -> Passes:
    return Passes(round(sample.mean * sample.n), sample.n)


def breaking(count: int, rate: float = 0.02) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return what lets so many scenarios fall on the first night, for good."""
    return lambda rates, _: np.concatenate([np.full(count, rate), rates[count:]])


def broken_until(night: int, count: int = 1) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return what lets so many scenarios fail until a night."""
    broken = breaking(count)
    return lambda rates, today: broken(rates, today) if today < night else rates


def months(plan: Nights, number: int, seed: int) -> list[Month]:
    """Return several months."""
    rng = np.random.default_rng(seed)
    return [simulate(rng, plan) for _ in range(number)]


def share_named(plan: Nights, number: int, seed: int, night: int = 1) -> float:
    """Return the share of the broken scenarios that are named by a night, from 1."""
    found = months(plan, number, seed)
    hits = sum(month.named.get(str(key), night) < night for month in found for key in range(plan.broken))
    return hits / number / plan.broken


def false_names(plan: Nights, number: int, seed: int) -> float:
    """Return the scenarios named a month of 30 nights."""
    found = months(plan, number, seed)
    return sum(len(month.named) for month in found) / number * 30 / plan.nights


def dearer_found(scenarios: int, trials: int, factor: float, number: int, seed: int) -> float:
    """Return how often costs that grew by a factor for good are found by the third night, on steady days."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(number):
        usual_costs = rng.normal(-3.0, 0.8, scenarios)
        line = [_costs(rng, usual_costs, trials) for _ in range(RECENT)]
        for _ in range(3):
            night = _costs(rng, usual_costs + log(factor), trials)
            change = compare_amount(COST, Line(line), night, (Line(line), night))
            line.insert(0, night)
            if change.verdict is ChangeVerdict.REGRESSED:
                found += 1
                break
    return found / number


def _costs(rng: np.random.Generator, usual_logs: np.ndarray, trials: int) -> dict[str, Sample]:
    return _samples(rng.normal(usual_logs[:, None], 0.5, (len(usual_logs), trials)))


def arms_found(scenarios: int, trials: int, broken: int, number: int, seed: int) -> float:
    """Return how often an A/B whose new arm broke scenarios reads regressed or names one by fresh trials in turn."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(number):
        old = usual(rng, scenarios)
        old[:broken] = 0.95
        new = breaking(broken)(old, 0)
        sides = [
            _samples((rng.random((scenarios, trials)) < rates[:, None]).astype(float)) for rates in (old, new)
        ]
        passes = [{key: _passes(each) for key, each in side.items()} for side in sides]
        fallen = choose_fallen(passes[1], passes[0], seed=int(rng.integers(1 << 30)))
        fresh = (
            (
                Passes(int(rng.binomial(n, new[int(key)])), n),
                Passes(int(rng.binomial(n, old[int(key)])), n),
                level,
            )
            for key, n, level in plan_in_turn(fallen)
        )
        named = any(decide_retest(*each) is RetestOutcome.NAMED for each in fresh)
        found += (
            named
            or decide_overall(compare_headline([(HEADLINE[0], *sides)], with_power=False))
            is ChangeVerdict.REGRESSED
        )
    return found / number


def uneven_alarms(scenarios: int, trials: int, hard: int, number: int, seed: int) -> float:
    """Return how often a run with so many trials, and hard scenarios added, reads regressed after a line of three."""
    rng, alarms = np.random.default_rng(seed), 0
    for _ in range(number):
        rates = np.concatenate([usual(rng, scenarios), np.full(hard, 0.2)])
        runs = [(rng.random((len(rates), 3)) < rates[:, None]).astype(float) for _ in range(RECENT)]
        line = [_samples(run[:scenarios]) for run in runs[2:]]
        with_hard = [_samples(run) for run in runs[:2]]
        new = _samples((rng.random((len(rates), trials)) < rates[:, None]).astype(float))
        compared = compare_with_line([(HEADLINE[0], Line([*with_hard, *line]), new)])
        alarms += decide_overall(compared.headline) is ChangeVerdict.REGRESSED
    return alarms / number


def expected_covered(plan: Nights, number: int, seed: int) -> float:
    """Return the share of unchanged runs whose pass rate lies where their line lets it be expected."""
    rng, covered = np.random.default_rng(seed), 0
    for _ in range(number):
        project = _Project(rng, plan)
        change = project.compare(project.run(project.night(project.rates)))[0]
        low, high = change.expected or (0.0, 0.0)
        covered += low - 1e-9 <= (change.after or 0.0) <= high + 1e-9
    return covered / number


def main() -> None:
    """Print the tables."""
    print("Unchanged: red mornings after a calm one, and scenarios named, a month; fresh trials a night")
    for scenarios, trials, day, alike in (
        (40, 3, 0.0, 0.0),
        (10, 3, 0.0, 0.0),
        (10, 3, 0.05, 0.0),
        (40, 3, 0.0, 0.1),
    ):
        found = months(Nights(scenarios, trials, day=day, alike=alike), 40, seed=1)
        reds, names, fresh = (
            sum(values) / len(found)
            for values in (
                [month.first_reds for month in found],
                [len(month.named) for month in found],
                [month.fresh / 30 for month in found],
            )
        )
        print(
            f"{scenarios} × {trials}, day {day}, alike {alike}: {reds:.2f} red, {names:.2f} named, {fresh:.1f} fresh"
        )
    print("Broken for good: named on the first night, on the second")
    for scenarios, broken in ((10, 1), (40, 1), (100, 1), (20, 10)):
        plan = Nights(scenarios, nights=2, broken=broken, change=breaking(broken))
        shares = [share_named(plan, 60, seed=2, night=night) for night in (1, 2)]
        print(f"{broken} of {scenarios} × 3: {shares[0]:.0%}, {shares[1]:.0%}")


if __name__ == "__main__":
    main()
