"""What a plan costs, how long it takes and what it can show, from recent runs like it."""

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
from runs.planning.run_history import COST, PASS, SECONDS, ArmPast, Past, TargetPast

OFFERED = (1, 3, 5, 10, 20)
"""Trials of each scenario that are held against each other."""
MOST_NAMED = 3
"""Runs that one sentence names."""


@dataclass(frozen=True)
class RunEstimate:
    """What one planned run comes to, with so many trials of each scenario."""

    run: PlannedRun
    past: ArmPast
    """The suite on the run's target and model."""
    elsewhere: TargetPast
    """Any suite there, for what the suite itself does not tell."""
    judged: bool
    """Whether judges are asked, who cost, too."""

    @property
    def ran(self) -> bool:
        """Whether anything ran on this target and model; what has no cost then told none."""
        return bool(self.past.runs or self.elsewhere.runs)

    def cost(self, trials: int) -> Estimate | None:
        """Return the cost in US dollars, None where nothing tells it."""
        if COST not in self.past.whole:
            return self._by_target(self.elsewhere.cost, trials)
        return self._by_scenario(COST, trials).scaled(self.past.surcharge if self.judged else 1.0)

    def seconds(self, trials: int) -> float | None:
        """Return the time of all trials sum_of_estimates, as if one came after another; None where nothing tells it."""
        if SECONDS in self.past.whole:
            return self._by_scenario(SECONDS, trials).expected
        found = self._by_target(self.elsewhere.seconds, trials)
        return found.expected if found else None

    def change(self, trials: int) -> float | None:
        """Return the smallest change of the pass rate, 0 to 1, that shows; None where too little is known."""
        return smallest_change(self.spread, len(self.run.scenarios), trials) if self.spread else None

    @cached_property
    def spread(self) -> Spread | None:
        """How the planned scenarios vary; None where too little is known of it."""
        return None if self.too_little else pass_rate_spread(self._known(PASS), self.past.whole[PASS])

    @cached_property
    def too_little(self) -> str:
        """What is missing to say what the run can show, and what would do; empty where nothing is."""
        planned, known = len(self.run.scenarios), len(self._known(PASS))
        if planned < FEWEST_SCENARIOS:
            return f"Too few scenarios for a statistical test; select at least {FEWEST_SCENARIOS}."
        if self.past.runs < FEWEST_RUNS:
            return (
                f"Only {counted(self.past.runs, 'finished run')} of this suite on this target; "
                f"an estimate needs {FEWEST_RUNS}."
            )
        if known < FEWEST_SCENARIOS:
            return f"Only {known} of {planned} scenarios have run here before; an estimate needs {FEWEST_SCENARIOS}."
        return ""

    def _known(self, measure: str) -> list[RunAggregate]:
        found = self.past.scenarios.get(measure, {})
        return [found[each.scenario_id] for each in self.run.scenarios if each.scenario_id in found]

    def _by_scenario(self, measure: str, trials: int) -> Estimate:
        found = self.past.scenarios.get(measure, {})
        scenarios = [found.get(each.scenario_id) for each in self.run.scenarios]
        return estimate_total(scenarios, self.past.whole[measure], trials)

    def _by_target(self, whole: RunAggregate | None, trials: int) -> Estimate | None:
        return estimate_total([None] * len(self.run.scenarios), whole, trials) if whole else None


@dataclass(frozen=True)
class Choice:
    """A number of trials of each scenario, and what the plan would come to."""

    trials: int
    is_chosen: bool
    change: float | None
    """Of the run that can show least; None where too little is known of every one."""
    cost: Estimate | None
    """Of those runs of which it is known."""
    seconds: float | None
    """From the first trial to the last, likewise."""


@dataclass(frozen=True)
class PlanEstimate:
    """What a plan comes to."""

    runs: Sequence[RunEstimate]
    choices: Sequence[Choice]
    reaches_back: bool
    """Whether all runs of the project were looked at."""

    @property
    def chosen(self) -> Choice:
        """What is asked for."""
        return next(choice for choice in self.choices if choice.is_chosen)

    @property
    def ran(self) -> bool:
        """Whether anything is known of any run."""
        return any(each.ran for each in self.runs)

    @property
    def at_once(self) -> int:
        """Trials that are carried at the same time."""
        return sum(_places(runs, self.chosen.trials) for runs in _by_target(self.runs))

    @property
    def weakest(self) -> RunEstimate | None:
        """The run that can show least, None where too little is known of every one."""
        known = [each for each in self.runs if each.spread]
        return max(known, key=lambda each: each.change(self.chosen.trials) or 0.0, default=None)

    @property
    def widest(self) -> float:
        """The largest change in the table, against which its bars are drawn."""
        return max(choice.change or 0.0 for choice in self.choices)

    @property
    def costed(self) -> int:
        """Planned trials of which the cost is known."""
        trials = self.chosen.trials
        return sum(each.run.trial_count for each in self.runs if each.cost(trials) is not None)

    @property
    def timed(self) -> int:
        """Planned trials of which the time is known."""
        trials = self.chosen.trials
        return sum(each.run.trial_count for each in self.runs if each.seconds(trials) is not None)

    @property
    def lacking(self) -> list[str]:
        """Sentences about what is not known, and what would help; each once, with the runs it is about."""
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


def estimated(planned: Sequence[PlannedRun], past: Past, *, judged: bool) -> PlanEstimate:
    """Return what a plan of one run or more comes to. `judged` tells whether judges are asked."""
    runs = [
        RunEstimate(
            each, past.arm(each.target.pk, each.model), past.target(each.target.pk, each.model), judged
        )
        for each in planned
    ]
    chosen = planned[0].trials
    choices = [_choice(runs, trials, is_chosen=trials == chosen) for trials in sorted({*OFFERED, chosen})]
    return PlanEstimate(runs, choices, past.reaches_back)


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
    """Return the runs of each target: targets work side by side, runs of one share its places."""
    found: dict[int, list[RunEstimate]] = {}
    for each in runs:
        found.setdefault(each.run.target.pk, []).append(each)
    return list(found.values())


def _places(runs: Sequence[RunEstimate], trials: int) -> int:
    """Return how many trials of a target's runs are carried at once."""
    places = sum(min(each.run.concurrency, len(each.run.scenarios) * trials) for each in runs)
    return min(places, runs[0].run.target.workers or places)


def _seconds(runs: Sequence[RunEstimate], trials: int) -> float | None:
    """Return how long a target's runs take: as many rounds of trials as its places need, each of the mean length."""
    known = [
        (took, len(each.run.scenarios) * trials)
        for each in runs
        if (took := each.seconds(trials)) is not None
    ]
    count = sum(n for _, n in known)
    mean = sum(took for took, _ in known) / count if count else None
    return None if mean is None else _told(ceil(count / _places(runs, trials)) * mean)


def _told(seconds: float) -> float:
    """Return a time without the seconds that an estimate of minutes cannot know."""
    return seconds if seconds < 99.5 else round(seconds / 60) * 60.0
