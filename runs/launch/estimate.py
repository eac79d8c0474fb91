"""Estimate the cost, time and statistical power of a plan from recent runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from statistics import fmean

from evalhub.lib.numbers import format_money
from evalhub.teams.models import Project
from evaluators.statistics.descriptive import Estimate, RunAggregate, estimate_total, sum_of_estimates
from evaluators.statistics.line import FEWEST_RUNS, MOST_RUNS, detectable_against_line
from evaluators.statistics.looks import PASS_RATE_SHARE
from evaluators.statistics.power import (
    RateTestLevel,
    can_reach,
    expected_rates,
    find_detectable_drop,
    most_power,
)
from evaluators.statistics.retest import Passes
from runs.compare.measure_changes import smallest_of_pass_rate
from runs.launch.request import PlannedRun, Request
from runs.launch.run_history import COST, PASS, SECONDS, ArmHistory, RunHistory, TargetHistory, read_history
from runs.models import Baseline, Run
from runs.models.run_options import RunOptions
from runs.results.spending import spent_this_month

OFFERED = (1, 3, 5, 10, 20)
"""Numbers of trials of each scenario to choose from."""
MOST_NAMED = 3
"""Most runs that one sentence names."""
UNDETECTABLE = 1.0
"""The detectable change of a plan by which none is found four times out of five."""


@dataclass(frozen=True)
class RunEstimate:
    """The estimate of one planned run."""

    planned: PlannedRun
    history: ArmHistory
    """Runs of the suite on the run's target and model."""
    target_history: TargetHistory
    """Runs of any suite there, used if the suite has none."""
    judged: bool
    """Whether judges run, which adds to the cost."""
    level: RateTestLevel
    """When the comparison with one run calls a change of the pass rate one."""
    may_have_line: bool = False
    """Whether it is compared with its line if that has enough runs."""

    @property
    def line(self) -> Sequence[float]:
        """The pass rates of the runs of its line; empty if it is compared with one run."""
        rates = self.history.pass_rates[:MOST_RUNS]
        return rates if self.may_have_line and len(rates) >= FEWEST_RUNS else ()

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

    @property
    def is_known(self) -> bool:
        """Whether earlier runs of the suite say what its pass rates are."""
        return bool(self._known)

    def change(self, trials: int) -> float | None:
        """Return the smallest detectable change of the pass rate, 0 to 1; None without earlier runs of the suite."""
        if not self.is_known:
            return None
        before, after = self.before, [trials] * len(self.before)
        if self.line:
            return detectable_against_line(self._rates, after, self.line, self.level.smallest)
        smallest = find_detectable_drop(self._rates, before, after, self.level)
        return UNDETECTABLE if smallest is None else smallest

    def why_undetectable(self, trials: int) -> str:
        """Return why no change is detected four times out of five; empty if one is, or if that is unknown."""
        before = self.before if self.is_known else [trials] * len(self.planned.scenarios)
        if self.line:
            before = [n * len(self.line) for n in before]
        after = [trials] * len(before)
        if not can_reach(before, after, self.level):
            return "So few trials can't reach a verdict, whatever they show."
        if self.line or self.change(trials) != UNDETECTABLE:
            return ""
        missed = 1 - most_power(self._rates, before, after, self.level)
        return f"Of comparisons this small, {missed * 100:.0f} % miss even the loss of every pass."

    @property
    def usual(self) -> int:
        """The number of trials of each scenario in earlier runs, and so in the run to compare with."""
        return max(1, round(sum(each.n for each in self._known) / sum(each.runs for each in self._known)))

    @property
    def before(self) -> list[int]:
        """The trials of each planned scenario in a run to compare with."""
        return [max(1, round(each.n / each.runs)) if each else self.usual for each in self._scenarios(PASS)]

    @property
    def old_passes(self) -> list[Passes]:
        """The trials of each planned scenario in its line, as far as its pass rate is known."""
        runs = min(MOST_RUNS, max(1, len(self.history.pass_rates)))
        counts = [runs * n for n in self.before]
        return [Passes(round(rate * n), n) for rate, n in zip(self._rates, counts, strict=True)]

    @cached_property
    def _rates(self) -> list[float]:
        known = iter(expected_rates([each.total for each in self._known], [each.n for each in self._known]))
        rates = [next(known) if each else None for each in self._scenarios(PASS)]
        usual = fmean(rate for rate in rates if rate is not None)
        return [usual if rate is None else rate for rate in rates]

    @cached_property
    def _known(self) -> list[RunAggregate]:
        return [each for each in self._scenarios(PASS) if each]

    def _scenarios(self, measure: str) -> list[RunAggregate | None]:
        """Return what earlier runs measured of each planned scenario; None of one that never ran."""
        aggregates = self.history.scenarios.get(measure, {})
        return [aggregates.get(each.scenario_id) for each in self.planned.scenarios]

    def _by_scenario(self, measure: str, trials: int) -> Estimate:
        return estimate_total(self._scenarios(measure), self.history.aggregates[measure], trials)

    def _by_target(self, aggregate: RunAggregate | None, trials: int) -> Estimate | None:
        return estimate_total([None] * len(self.planned.scenarios), aggregate, trials) if aggregate else None


@dataclass(frozen=True)
class Choice:
    """A number of trials of each scenario, with the estimates of the plan."""

    trials: int
    is_chosen: bool
    runs: Sequence[RunEstimate]
    cost: Estimate | None
    """The cost of the runs with a known cost."""
    seconds: float | None
    """The time from the first trial to the last, likewise."""

    @cached_property
    def change(self) -> float | None:
        """The smallest detectable change of the least powerful run; None without earlier runs of the suite."""
        changes = (each.change(self.trials) for each in self.runs)
        return max((change for change in changes if change is not None), default=None)


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
        """The least powerful run; None without earlier runs of the suite."""
        known = [estimate for estimate in self.runs if estimate.is_known]
        return max(known, key=lambda estimate: estimate.change(self.chosen.trials) or 0.0, default=None)

    @property
    def widest(self) -> float:
        """The largest change in the table, the scale of its bars."""
        return max(choice.change or 0.0 for choice in self.choices)

    @property
    def costed(self) -> int:
        """Number of planned trials with a known cost."""
        trials = self.chosen.trials
        return sum(each.planned.trial_count for each in self.runs if each.cost(trials) is not None)

    @property
    def timed(self) -> int:
        """Number of planned trials with a known time."""
        trials = self.chosen.trials
        return sum(each.planned.trial_count for each in self.runs if each.seconds(trials) is not None)

    @property
    def lacking(self) -> list[str]:
        """Sentences about missing data, each once, with its runs."""
        when = "yet" if self.reaches_back else "lately"
        about: dict[str, list[str]] = {}
        for estimate in self.runs:
            if not estimate.ran:
                about.setdefault(f"no runs on this target {when}, so no estimate.", []).append(
                    target_and_model(estimate.planned.run)
                )
        for estimate in self.runs:
            if sentence := estimate.why_undetectable(self.chosen.trials):
                about.setdefault(sentence, []).append(target_and_model(estimate.planned.run))
            elif estimate.ran and not estimate.is_known:
                about.setdefault(
                    "no finished run of these scenarios here yet, so no detectable change.", []
                ).append(target_and_model(estimate.planned.run))
        return [self._about(names, sentence) for sentence, names in about.items()]

    def _about(self, names: Sequence[str], sentence: str) -> str:
        if len(names) == len(self.runs):
            return sentence[0].upper() + sentence[1:]
        more = len(names) - MOST_NAMED
        return f"{'; '.join(names[:MOST_NAMED])}{f'; and {more} more' if more > 0 else ''}: {sentence}"


def target_and_model(run: Run) -> str:
    """Return a planned run's target and model."""
    return f"{run.target.name}, {run.model}" if run.model else run.target.name


def estimate_plan(
    planned: Sequence[PlannedRun],
    history: RunHistory,
    *,
    judged: bool,
    smallest: float,
    line_targets: Collection[int] = (),
) -> PlanEstimate:
    """Return the estimate of a plan of one or more runs.

    `judged`: whether judges run. `smallest`: the smallest effect of interest on the pass rate, 0 to 1. `line_targets`:
    keys of the targets whose runs are compared with their line.
    """
    level = RateTestLevel(PASS_RATE_SHARE, smallest)
    runs = []
    for each in planned:
        arm = each.run.target_id, each.run.model
        has_line = each.run.target_id in line_targets
        runs.append(RunEstimate(each, history.arm(*arm), history.target(*arm), judged, level, has_line))
    chosen = planned[0].trials
    choices = [_choice(runs, trials, is_chosen=trials == chosen) for trials in sorted({*OFFERED, chosen})]
    return PlanEstimate(runs, choices, history.reaches_back)


def line_targets(planned: Sequence[PlannedRun], request: Request, history: RunHistory) -> set[int]:
    """Return the keys of the targets whose runs are compared with their line, for `estimate_plan`. At most one query.

    Runs with a chosen or pinned baseline, several versions of guidance and runs until a verdict have one run instead.
    """
    targets = {
        each.run.target_id
        for each in planned
        if len(history.arm(each.run.target_id, each.run.model).pass_rates) >= FEWEST_RUNS
    }
    options = request.options
    if not targets or options.baseline or options.until_decided or len(request.guidance) > 1:
        return set()
    suites = {each.run.suite_id for each in planned}
    branches = {planned[0].run.branch, ""}
    pinned = Baseline.objects.filter(suite__in=suites, target__in=targets, branch__in=branches)
    return targets - set(pinned.values_list("target", flat=True))


def _choice(runs: Sequence[RunEstimate], trials: int, *, is_chosen: bool) -> Choice:
    costs = [cost for each in runs if (cost := each.cost(trials)) is not None]
    seconds = [took for each in _by_target(runs) if (took := _seconds(each, trials)) is not None]
    return Choice(
        trials=trials,
        is_chosen=is_chosen,
        runs=runs,
        cost=sum_of_estimates(costs) if costs else None,
        seconds=max(seconds, default=None),
    )


def _by_target(runs: Iterable[RunEstimate]) -> list[list[RunEstimate]]:
    """Return the runs of each target: targets work in parallel, and the runs of one share its slots."""
    by_target: dict[int, list[RunEstimate]] = {}
    for estimate in runs:
        by_target.setdefault(estimate.planned.run.target_id, []).append(estimate)
    return list(by_target.values())


def _places(runs: Sequence[RunEstimate], trials: int) -> int:
    """Return the number of parallel trials of a target's runs."""
    places = sum(min(each.planned.run.concurrency, len(each.planned.scenarios) * trials) for each in runs)
    return min(places, runs[0].planned.run.target.workers or places)


def _seconds(runs: Sequence[RunEstimate], trials: int) -> float | None:
    """Return how long a target's runs take: the rounds of parallel trials times their mean time."""
    known = [
        (took, len(estimate.planned.scenarios) * trials)
        for estimate in runs
        if (took := estimate.seconds(trials)) is not None
    ]
    count = sum(n for _, n in known)
    mean = sum(took for took, _ in known) / count if count else None
    return None if mean is None else _round_time(ceil(count / _places(runs, trials)) * mean)


def _round_time(seconds: float) -> float:
    """Return a time, rounded to minutes from 99.5 seconds on."""
    return seconds if seconds < 99.5 else round(seconds / 60) * 60.0


def estimates_of(project: Project, planned: Sequence[PlannedRun], *, judged: bool) -> list[PlanEstimate]:
    """Return the estimate of each suite's runs of a plan. Three queries for each suite."""
    suites = dict.fromkeys(each.run.suite_id for each in planned)
    smallest, estimates = smallest_of_pass_rate(project), []
    for suite in suites:
        runs = [each for each in planned if each.run.suite_id == suite]
        scenarios = sorted({scenario.scenario_id for each in runs for scenario in each.scenarios})
        history = read_history(project.pk, suite, scenarios, {each.run.target_id for each in runs})
        estimates.append(estimate_plan(runs, history, judged=judged, smallest=smallest))
    return estimates


def warn_over_budget(project: Project, planned: Sequence[PlannedRun], options: RunOptions) -> str:
    """Return a warning if the plan's estimated cost is above a budget, its own or the month's, else an empty text."""
    if options.max_usd is None and project.month_usd is None:
        return ""
    estimates = estimates_of(project, planned, judged=options.judge)
    costs = [each.chosen.cost for each in estimates if each.chosen.cost]
    expected = sum_of_estimates(costs).expected if costs else None
    return budget_warning(expected, options.max_usd) or month_warning(project, expected)


def month_warning(project: Project, expected: float | None) -> str:
    """Return a warning if an expected cost is above what is left of the project's month, else an empty text."""
    if project.month_usd is None or expected is None:
        return ""
    left = max(0.0, project.month_usd - spent_this_month(project.pk))
    if expected <= left:
        return ""
    return (
        f"The estimated cost of {format_money(expected)} is above the {format_money(left)} that are left of the project's budget"
        " this month: the last trials may not run."
    )


def budget_warning(expected: float | None, max_usd: float | None) -> str:
    """Return a warning if an expected cost is above a budget, else an empty text."""
    if max_usd is None or expected is None or expected <= max_usd:
        return ""
    return (
        f"The estimated cost of {format_money(expected)} is above the budget of {format_money(max_usd)}: "
        "the last trials may not run."
    )
