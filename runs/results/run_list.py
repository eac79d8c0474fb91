"""Read runs as rows of lists, each with its badge: one answer, the first that is true.

A suite's release rule: the next k trials of every scenario must pass, with a chance of at least so much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean
from typing import Any, Literal, NamedTuple, Protocol

from django.db.models import Q, QuerySet

from evalhub.lib.numbers import format_count
from evalhub.teams.models import Project
from evalhub.web.paging import SIZE, Page, page_below
from evalhub.web.states import sign_of_state
from evaluators.statistics.measure_change import ChangeVerdict, Sample
from runs.models import Change, Run, RunMeasure
from runs.models.run import OPEN, STALE, Outcomes, RunState, has_too_many_errors
from runs.results.digests import digests_of
from runs.results.rates import Rate, run_rate
from runs.results.run_filters import RunListFilters, with_tag_lines
from runs.results.run_rows import TOOL_FORGE, ListedRun, as_listed, listed_values
from scenarios.models import SESSIONS, Suite

MET, MISSED, NOT_MEASURED = "met", "missed", "not_measured"
MOST_NAMED = 5


@dataclass(frozen=True)
class ReleaseResult:
    """A run's pass^k, as the mean over its scenarios, beside the threshold."""

    k: int
    threshold: float
    value: float | None
    """None if no scenario has k trials."""
    scenarios: int
    """Scenarios with k trials that passed or failed."""
    too_few_trials: tuple[str, ...]

    @property
    def state(self) -> str:
        if self.too_few_trials or self.value is None:
            return NOT_MEASURED
        return MET if self.value >= self.threshold else MISSED

    @property
    def sentence(self) -> str:
        """Say whether the rule is met, and by which figures."""
        rule = f"Release rule: pass^{self.k} of {self.threshold:.0%} or more"
        if self.state == NOT_MEASURED:
            named = ", ".join(self.too_few_trials[:MOST_NAMED]) or "every scenario"
            more = len(self.too_few_trials) - MOST_NAMED
            named += f" and {more} more" if more > 0 else ""
            return f"{rule}. Not measured: fewer than {format_count(self.k, 'trial')} passed or failed of {named}."
        # Rounded down, so that 89.99 % doesn't read as the 90 % it misses.
        shown = int((self.value or 0.0) * 1000) / 10
        word = "Met" if self.state == MET else "Missed"
        return f"{rule}. {word}: {shown:g} % over {format_count(self.scenarios, 'scenario')}."

    def as_json(self) -> dict[str, Any]:
        """Return the result for REST and files."""
        return {**vars(self), "state": self.state, "sentence": self.sentence}


def by_rule(suite: Suite, outcomes: Mapping[str, Sequence[str]]) -> ReleaseResult | None:
    """Return the result of finished trials' outcomes by scenario; None if the suite has no rule."""
    if suite.release_k is None or suite.release_threshold is None:
        return None
    return release_result_of(outcomes, k=suite.release_k, threshold=suite.release_threshold)


def release_result_of(outcomes: Mapping[str, Sequence[str]], *, k: int, threshold: float) -> ReleaseResult:
    """Return the result of finished trials' outcomes by scenario."""
    chances = {key: Rate.of(results).all_of(k) for key, results in outcomes.items()}
    known = [chance for chance in chances.values() if chance is not None]
    missing = tuple(key for key, chance in chances.items() if chance is None)
    return ReleaseResult(k, threshold, fmean(known) if known else None, len(known), missing)


def release_result(run: Run) -> ReleaseResult | None:
    """Return a closed run's result; None while it is open or without a rule. One query."""
    if run.is_open or run.suite.release_k is None:
        return None
    return by_rule(run.suite, digests_of([run.pk])[run.pk].outcomes)


RunAnswer = Literal[
    "running",
    "cancelled",
    "error",  # None of its trials could run.
    "tool_not_started",  # Its agents called the tool, which never started.
    "errors",  # A third of its trials or more hit errors.
    "unchecked",  # Nothing checked its trials.
    "regressed",
    "failed",  # It missed a rule that every trial passes.
    "below_release_rule",  # It missed its suite's release rule.
    "improved",
    "small_change",
    "as_expected",  # Its pass rate is in the expected range of its line.
    "as_before",  # A change of the smallest effect would have been found.
    "undecided",
    "not_comparable",
    "new_line",  # Nothing comparable came before.
    # It joins no line, and is compared with nothing: the first arm of a comparison, such as a lift's without the skill.
    "experiment",
]
"""The states that a run's badge shows, as in `STATES`; of several the first that is true."""
BY_VERDICT: dict[str, RunAnswer] = {
    ChangeVerdict.REGRESSED: "regressed",
    ChangeVerdict.IMPROVED: "improved",
    ChangeVerdict.SMALL: "small_change",
    ChangeVerdict.NOT_COMPARABLE: "not_comparable",
    ChangeVerdict.EQUIVALENT: "as_before",
    ChangeVerdict.NO_EVIDENCE: "as_before",
    ChangeVerdict.AS_EXPECTED: "as_expected",
    ChangeVerdict.TOO_LITTLE: "undecided",
}


class EndedRun(Outcomes, Protocol):
    """The fields of a run that its answer depends on, of a model or a row."""

    @property
    def state(self) -> str: ...
    @property
    def error(self) -> str: ...
    @property
    def verdict(self) -> str | None: ...
    @property
    def is_experiment(self) -> bool: ...


def answer_of(run: EndedRun, *, rule: str = "", needs_all: bool = False) -> RunAnswer:
    """Return a run's answer.

    `rule` is the state of its suite's release rule, empty without one; `needs_all` is whether every trial has to pass,
    as in tool-forge's suites and with a release rule of 100 %.
    """
    if run.state in OPEN:
        return "running"
    if run.state == RunState.CANCELLED:
        return "cancelled"
    if run.error:
        return "error"
    if run.not_started:
        return "tool_not_started"
    if has_too_many_errors(run.passed, run.failed, run.errors):
        return "errors"
    if run.is_unchecked:
        return "unchecked"
    by_verdict = BY_VERDICT.get(run.verdict or "")
    if by_verdict == "regressed":
        return by_verdict
    if needs_all and run.failed:
        return "failed"
    if rule == MISSED:
        return "below_release_rule"
    return by_verdict or ("experiment" if run.is_experiment else "new_line")


def answer_of_run(run: Run, release: ReleaseResult | None = None) -> RunAnswer:
    """Return a run's answer. No query if its suite is loaded and has no release rule, or if its result is given."""
    suite = run.suite
    result = release or release_result(run)
    needs_all = suite.format == TOOL_FORGE or (suite.release_threshold or 0.0) >= 1.0
    return answer_of(run, rule=result.state if result else "", needs_all=needs_all)


def badge_of(run: Run) -> str:
    """Return a run's badge: its state while open, else its answer; none for people's sessions."""
    if run.suite.has_sessions:
        return SESSIONS
    return run.state if run.is_open else answer_of_run(run)


SHOWN_MEASURES = {("judge", "judge"): "judge", ("interaction", "first_try_success_rate"): "first_try"}


class RowBaseline(NamedTuple):
    """A run's baseline in the figures above a list."""

    pk: int
    passed: int
    failed: int
    pass_rate: float | None
    cost_usd: float | None
    first_try: Sample | None = None
    """Its scenarios' means; loaded for the newest run's baseline and for runs in the list."""


@dataclass(frozen=True)
class RunRow:
    """A run with its values in a list."""

    run: ListedRun
    judge: float | None = None
    """Mean of the judge's scores."""
    first_try: Sample | None = None
    """The scenarios' means."""
    change: float | None = None
    """Difference to the baseline's pass rate."""
    before: float | None = None
    """The baseline's pass rate over the scenarios that both runs have."""
    baseline: RowBaseline | None = None
    rule: str = ""
    """The state of its suite's release rule; empty without one."""

    @property
    def answer(self) -> RunAnswer:
        """Return its badge."""
        return answer_of(self.run, rule=self.rule, needs_all=self.run.needs_all)

    @property
    def verdict(self) -> str:
        """Return the verdict against the baseline; empty without one."""
        return self.run.verdict or ""

    @property
    def rate(self) -> Rate:
        return run_rate(self.run)

    @property
    def direction(self) -> str:
        """Return `better`, `worse` or `muted`, from the comparison with the baseline."""
        direction = sign_of_state(self.verdict)[1] or "muted"
        # Another measure may have regressed: then the rate is not worse.
        return "muted" if direction == "worse" and (self.change or 0.0) >= 0 else direction

    @property
    def state(self) -> str:
        """Return the badge: before the end the state, then the answer; people's sessions have none."""
        if self.run.format == SESSIONS:
            return SESSIONS
        return self.run.state if self.run.is_open else self.answer


RELATED = ("project", "suite__project", "target", "guidance", "by", "suite_version")
HEAVY = (
    "options",
    "fingerprint",
    "warnings",
    "target__definition",
    "guidance__files",
    "suite_version__targets_text",
    "suite_version__solutions",
    "suite_version__config",
    "suite_version__lints",
)
"""Columns that no list shows."""


def runs_of(project: Project | int) -> QuerySet[Run]:
    """Return a project's runs with every row's values; `is_stale` marks files outdated for the tool."""
    runs = Run.objects.filter(project=project).annotate(is_stale=STALE)
    return runs.select_related(*RELATED).defer(*HEAVY)


def read_rows(runs: Sequence[ListedRun]) -> list[RunRow]:
    """Return the runs with their headline measures and verdicts. Two queries, three with a release rule."""
    keys: tuple[int, ...] = tuple(run.id for run in runs)
    changes = {row[0]: row for row in _headlines(keys)}
    newest = next((changes[key][BASELINE] for key in keys if key in changes), None)
    measures: dict[int, dict[str, Sample]] = {}
    for run, layer, name, n, mean, m2 in _measures(keys if newest is None else (*keys, newest)):
        measures.setdefault(run, {})[SHOWN_MEASURES[layer, name]] = Sample(n, mean, m2)
    rules = _rules(runs)
    return [_row(run, measures, changes.get(run.id), rules.get(run.id, "")) for run in runs]


def _rules(runs: Sequence[ListedRun]) -> dict[int, str]:
    """Return the state of the release rule of each closed run whose suite has one."""
    ruled = {run.id: run for run in runs if run.release_k and run.release_threshold and not run.is_open}
    states = {}
    for key, digest in digests_of(list(ruled)).items() if ruled else ():
        run = ruled[key]
        result = release_result_of(
            digest.outcomes, k=run.release_k or 1, threshold=run.release_threshold or 0.0
        )
        states[key] = result.state
    return states


def _measures(runs: tuple[int, ...]) -> QuerySet[RunMeasure, tuple[int, str, str, int, float, float]]:
    shown = Q()
    for layer, name in SHOWN_MEASURES:
        shown |= Q(measure__layer=layer, measure__name=name)
    rows = RunMeasure.objects.filter(shown, run__in=runs, scenario=None)
    return rows.values_list("run", "measure__layer", "measure__name", "n", "mean", "m2")


def _headlines(runs: tuple[int, ...]) -> QuerySet[Change, Any]:
    headline = Change.objects.filter(
        run__in=runs, scenario=None, measure__layer="trial", measure__name="pass"
    )
    held = (
        "baseline_id",
        "baseline__passed",
        "baseline__failed",
        "baseline__pass_rate",
        "baseline__cost_usd",
    )
    return headline.values_list("run", "before", "after", *held)


BASELINE = 3
"""Index of the key in a headline."""


def _row(
    run: ListedRun, measures: dict[int, dict[str, Sample]], change: Sequence[Any] | None, rule: str
) -> RunRow:
    means = measures.get(run.id, {})
    judge, first_try = means.get("judge"), means.get("first_try")
    mean = judge.mean if judge else None
    if change is None:
        return RunRow(run, mean, first_try, rule=rule)
    _, before, after, *held = change
    difference = None if before is None or after is None else after - before
    baseline = RowBaseline(*held)._replace(first_try=measures.get(held[0], {}).get("first_try"))
    return RunRow(run, mean, first_try, difference, before, baseline, rule)


def matching_runs(project: Project, filters: RunListFilters) -> QuerySet[Run]:
    """Return the runs that match the filters, with every row's values."""
    return with_tag_lines(runs_of(project), filters).filter(filters.condition())


def page_of_runs(
    project: Project, filters: RunListFilters, before: str, *, size: int = SIZE
) -> Page[ListedRun]:
    """Return one page of the runs that match, newest first. One query."""
    values = listed_values(matching_runs(project, filters))
    page = page_below(values, before, size=size, key_in=itemgetter("pk"))
    return Page(as_listed(page.rows), page.before, page.first)
