"""Read runs as rows for the runs page and a project's home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from evalhub.teams.models import Project
from evalhub.web.paging import SIZE, Page, page_below
from evalhub.web.states import sign_of_state
from runs.models import Change, Run, RunMeasure
from runs.models.run import STALE
from runs.results.digests import digests_of
from runs.results.rates import Rate, run_rate
from runs.results.release_rule import release_result_of
from runs.results.run_answers import RunAnswer, answer_of
from runs.results.run_filters import RunListFilters, with_tag_lines
from runs.results.run_rows import ListedRun, as_listed, listed_values
from scenarios.models import SESSIONS

SHOWN_MEASURES = {("judge", "judge"): "judge", ("interaction", "first_try_success_rate"): "first_try"}


class Spread(NamedTuple):
    """A measure of a run over its scenarios: their number, the mean of their means, the sum of squared differences."""

    n: int
    mean: float
    m2: float


class RowBaseline(NamedTuple):
    """A run's baseline in the figures above a list."""

    pk: int
    passed: int
    failed: int
    pass_rate: float | None
    cost_usd: float | None
    first_try: Spread | None = None
    """Loaded for the newest run's baseline and for runs in the list."""


@dataclass(frozen=True)
class RunRow:
    """A run with its values in a list."""

    run: ListedRun
    judge: float | None = None
    """Mean of the judge's scores."""
    first_try: Spread | None = None
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
        return self.run.state if self.run.is_open else self.answer.value


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


def rows(runs: Sequence[ListedRun]) -> list[RunRow]:
    """Return the runs with their headline measures and verdicts. Two queries, three with a release rule."""
    keys: tuple[int, ...] = tuple(run.id for run in runs)
    changes = {row[0]: row for row in _headlines(keys)}
    newest = next((changes[key][BASELINE] for key in keys if key in changes), None)
    measures: dict[int, dict[str, Spread]] = {}
    for run, layer, name, n, mean, m2 in _measures(keys if newest is None else (*keys, newest)):
        measures.setdefault(run, {})[SHOWN_MEASURES[layer, name]] = Spread(n, mean, m2)
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
    run: ListedRun, measures: dict[int, dict[str, Spread]], change: Sequence[Any] | None, rule: str
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
