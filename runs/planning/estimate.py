"""Estimates the cost, time and statistical power of a plan from recent runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from evalhub.web.numbers import counted
from evaluators.aggregate import RunAggregate
from evaluators.estimates import Estimate, estimate_total, sum_of_estimates
from evaluators.power import FEWEST_RUNS, FEWEST_SCENARIOS, Spread, pass_rate_spread, smallest_change
from runs.planning.request import PlannedRun
from runs.planning.run_history import COST, PASS, SECONDS, ArmHistory, RunHistory, TargetHistory

OFFERED = (1, 3, 5, 10, 20)
"""Numbers of trials of each scenario to choose from."""
MOST_NAMED = 3
"""Most runs that one sentence names."""


@dataclass(frozen=True)
class RunEstimate:
    """The estimate of one planned run."""

    run: PlannedRun
    history: ArmHistory
    """Runs of the suite on the run's target and model."""
    target_history: TargetHistory
    """Runs of any suite there, used if the suite has none."""
    judged: bool
    """Whether judges run, which adds to the cost."""

    @property
    def ran(self) -> bool:
        """Whether any run used this target and model; a missing cost was then not reported."""
        return bool(self.history.runs or self.target_history.runs)

    def cost(self, trials: int) -> Estimate | None:
        """Return the cost in US dollars; None if unknown."""
        if COST not in self.history.aggregates:
            return self._by_target(self.target_history.cost, trials)
        return self._by_scenario(COST, trials).scaled(self.history.surcharge if self.judged else 1.0)

    def seconds(self, trials: int) -> float | None:
        """Return the total time of all trials, run one after another; None if unknown."""
        if SECONDS in self.history.aggregates:
            return self._by_scenario(SECONDS, trials).expected
        estimate = self._by_target(self.target_history.seconds, trials)
        return estimate.expected if estimate else None

    def change(self, trials: int) -> float | None:
        """Return the smallest detectable change of the pass rate, 0 to 1; None with too little data."""
        return smallest_change(self.spread, len(self.run.scenarios), trials) if self.spread else None

    @cached_property
    def spread(self) -> Spread | None:
        """The variation of the planned scenarios; None with too little data."""
        return None if self.too_little else pass_rate_spread(self._known(PASS), self.history.aggregates[PASS])

    @cached_property
    def too_little(self) -> str:
        """A sentence about the data missing for an estimate of power; empty if none is."""
        planned, known = len(self.run.scenarios), len(self._known(PASS))
        if planned < FEWEST_SCENARIOS:
            return f"Too few scenarios for a statistical test; select at least {FEWEST_SCENARIOS}."
        if self.history.runs < FEWEST_RUNS:
            return (
                f"Only {counted(self.history.runs, 'finished run')} of this suite on this target; "
                f"an estimate needs {FEWEST_RUNS}."
            )
        if known < FEWEST_SCENARIOS:
            return f"Only {known} of {planned} scenarios have run here before; an estimate needs {FEWEST_SCENARIOS}."
        return ""

    def _known(self, measure: str) -> list[RunAggregate]:
        aggregates = self.history.scenarios.get(measure, {})
        return [aggregates[each.scenario_id] for each in self.run.scenarios if each.scenario_id in aggregates]

    def _by_scenario(self, measure: str, trials: int) -> Estimate:
        aggregates = self.history.scenarios.get(measure, {})
        scenarios = [aggregates.get(each.scenario_id) for each in self.run.scenarios]
        return estimate_total(scenarios, self.history.aggregates[measure], trials)

    def _by_target(self, aggregate: RunAggregate | None, trials: int) -> Estimate | None:
        return estimate_total([None] * len(self.run.scenarios), aggregate, trials) if aggregate else None


@dataclass(frozen=True)
class Choice:
    """A number of trials of each scenario, with the estimates of the plan."""

    trials: int
    is_chosen: bool
    change: float | None
    """The smallest detectable change of the least powerful run; None with too little data."""
    cost: Estimate | None
    """The cost of the runs with a known cost."""
    seconds: float | None
    """The time from the first trial to the last, likewise."""


@dataclass(frozen=True)
class PlanEstimate:
    """The estimate of a plan."""

    runs: Sequence[RunEstimate]
    choices: Sequence[Choice]
    reaches_back: bool
    """Whether all runs of the project were read."""

    @property
    def chosen(self) -> Choice:
        """The requested number of trials."""
        return next(choice for choice in self.choices if choice.is_chosen)

    @property
    def ran(self) -> bool:
        """Whether any planned run has earlier ones."""
        return any(each.ran for each in self.runs)

    @property
    def at_once(self) -> int:
        """Number of parallel trials."""
        return sum(_places(runs, self.chosen.trials) for runs in _by_target(self.runs))

    @property
    def weakest(self) -> RunEstimate | None:
        """The least powerful run; None with too little data."""
        known = [each for each in self.runs if each.spread]
        return max(known, key=lambda each: each.change(self.chosen.trials) or 0.0, default=None)

    @property
    def widest(self) -> float:
        """The largest change in the table, the scale of its bars."""
        return max(choice.change or 0.0 for choice in self.choices)

    @property
    def costed(self) -> int:
        """Number of planned trials with a known cost."""
        trials = self.chosen.trials
        return sum(each.run.trial_count for each in self.runs if each.cost(trials) is not None)

    @property
    def timed(self) -> int:
        """Number of planned trials with a known time."""
        trials = self.chosen.trials
        return sum(each.run.trial_count for each in self.runs if each.seconds(trials) is not None)

    @property
    def lacking(self) -> list[str]:
        """Sentences about missing data, each once, with its runs."""
        when = "yet" if self.reaches_back else "lately"
        about: dict[str, list[str]] = {}
        for each in self.runs:
            if not each.ran:
                about.setdefault(f"no runs on this target {when}, so no estimate.", []).append(
                    named(each.run)
                )
        for each in self.runs:
            if each.too_little:
                about.setdefault(each.too_little, []).append(named(each.run))
        return [self._about(names, sentence) for sentence, names in about.items()]

    def _about(self, names: Sequence[str], sentence: str) -> str:
        if len(names) == len(self.runs):
            return sentence[0].upper() + sentence[1:]
        more = len(names) - MOST_NAMED
        return f"{'; '.join(names[:MOST_NAMED])}{f'; and {more} more' if more > 0 else ''}: {sentence}"


def named(run: PlannedRun) -> str:
    """Return a planned run's target and model."""
    return f"{run.target.name}, {run.model}" if run.model else run.target.name


def estimate_plan(planned: Sequence[PlannedRun], history: RunHistory, *, judged: bool) -> PlanEstimate:
    """Return the estimate of a plan of one or more runs. `judged`: whether judges run."""
    runs = [
        RunEstimate(
            each, history.arm(each.target.pk, each.model), history.target(each.target.pk, each.model), judged
        )
        for each in planned
    ]
    chosen = planned[0].trials
    choices = [_choice(runs, trials, is_chosen=trials == chosen) for trials in sorted({*OFFERED, chosen})]
    return PlanEstimate(runs, choices, history.reaches_back)


def _choice(runs: Sequence[RunEstimate], trials: int, *, is_chosen: bool) -> Choice:
    changes = [change for each in runs if (change := each.change(trials)) is not None]
    costs = [cost for each in runs if (cost := each.cost(trials)) is not None]
    seconds = [took for each in _by_target(runs) if (took := _seconds(each, trials)) is not None]
    return Choice(
        trials=trials,
        is_chosen=is_chosen,
        change=max(changes, default=None),
        cost=sum_of_estimates(costs) if costs else None,
        seconds=max(seconds, default=None),
    )


def _by_target(runs: Iterable[RunEstimate]) -> list[list[RunEstimate]]:
    """Return the runs of each target: targets work in parallel, and the runs of one share its slots."""
    by_target: dict[int, list[RunEstimate]] = {}
    for each in runs:
        by_target.setdefault(each.run.target.pk, []).append(each)
    return list(by_target.values())


def _places(runs: Sequence[RunEstimate], trials: int) -> int:
    """Return the number of parallel trials of a target's runs."""
    places = sum(min(each.run.concurrency, len(each.run.scenarios) * trials) for each in runs)
    return min(places, runs[0].run.target.workers or places)


def _seconds(runs: Sequence[RunEstimate], trials: int) -> float | None:
    """Return how long a target's runs take: the rounds of parallel trials times their mean time."""
    known = [
        (took, len(each.run.scenarios) * trials)
        for each in runs
        if (took := each.seconds(trials)) is not None
    ]
    count = sum(n for _, n in known)
    mean = sum(took for took, _ in known) / count if count else None
    return None if mean is None else _rounded(ceil(count / _places(runs, trials)) * mean)


def _rounded(seconds: float) -> float:
    """Return a time, rounded to minutes from 99.5 seconds on."""
    return seconds if seconds < 99.5 else round(seconds / 60) * 60.0
