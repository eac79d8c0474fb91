"""Runs as rows: what the runs page and a project's home list."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any

from django.db.models import CharField, Q, QuerySet
from django.db.models.functions import Cast
from django.http import QueryDict

from evalhub.teams.models import Project
from evalhub.web.paging import LARGEST_KEY, SIZE, Page, cut, key_of, page_below
from evalhub.web.prepared import prepared
from runs.models import Change, Run, RunMeasure
from runs.models.run import STALE, RunState
from runs.warehouse.listing import ListedRun, as_listed, listed, newest_runs
from runs.warehouse.rates import Rate

OUTCOMES = ("pass", "fail", "error")
STATES = (
    ("pass", "passed"),
    ("fail", "failed"),
    ("error", "error"),
    ("open", "not over yet"),
    ("cancelled", "cancelled"),
)
OPEN = (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)
SHOWN_MEASURES = {("judge", "judge"): "judge", ("interaction", "first_try_success_rate"): "first_try"}


@dataclass(frozen=True)
class Filters:
    """What the address asks for; an empty text is no condition."""

    q: str = ""
    suite: str = ""
    target: str = ""
    model: str = ""
    guidance: str = ""
    tag: str = ""
    state: str = ""
    """An outcome, or `open`, or `cancelled`."""

    @classmethod
    def of(cls, query: QueryDict) -> Filters:
        """Read the filters of an address; anything else in it is left alone."""
        return cls(**{each.name: query.get(each.name, "").strip()[:200] for each in fields(cls)})

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Name and value of every condition, in the order of the form."""
        return [(each.name, getattr(self, each.name)) for each in fields(self) if getattr(self, each.name)]

    def condition(self) -> Q:
        """Return the conditions as one, for runs that are annotated with their tags as `tags_text`."""
        found = Q()
        for column, value in (
            ("suite__slug", self.suite),
            ("target__name", self.target),
            ("model", self.model),
        ):
            if value:
                found &= Q(**{column: value})
        if self.guidance:
            found &= Q(guidance=key_of(self.guidance) or 0)
        if self.tag:
            # The tags are JSON text on every database; the quotes keep `night` from matching `nightly`.
            found &= Q(tags_text__contains=json.dumps(self.tag))
        return found & self._state() & self._text()

    def _state(self) -> Q:
        if self.state == "open":
            return Q(state__in=OPEN)
        if self.state in OUTCOMES:
            return Q(outcome=self.state)
        return Q(state=self.state) if self.state else Q()

    def _text(self) -> Q:
        if not self.q:
            return Q()
        number = key_of(self.q.lstrip("#"))
        found = (
            Q(suite__name__icontains=self.q) | Q(target__name__icontains=self.q) | Q(model__icontains=self.q)
        )
        found |= (
            Q(by__username__icontains=self.q)
            | Q(tool_version__icontains=self.q)
            | Q(tags_text__icontains=self.q)
        )
        return found | Q(pk=number) if number is not None else found


@dataclass(frozen=True)
class RunRow:
    """A run with what stands beside it in a list."""

    run: Run | ListedRun
    measures: dict[str, float]
    verdict: str = ""
    change: float | None = None
    """Difference of the pass rate to the baseline's."""

    @property
    def rate(self) -> Rate:
        return Rate(self.run.passed, self.run.passed + self.run.failed)

    @property
    def change_points(self) -> float:
        """The difference without its sign, in percentage points."""
        return abs(self.change or 0.0) * 100

    @property
    def direction(self) -> str:
        """`better`, `worse` or `muted`: what the comparison with the baseline says."""
        told = {"regressed": "worse", "improved": "better"}.get(self.verdict, "muted")
        # What one scenario lost, others may have won: then the rate itself is no worse.
        return "muted" if told == "worse" and (self.change or 0.0) > 0 else told

    @property
    def state(self) -> str:
        """The word of the badge: where nothing was compared, how it ended or where it stands."""
        if self.run.is_open or self.run.state == RunState.CANCELLED:
            return self.run.state
        return (
            self.verdict if self.verdict in ("regressed", "improved") else self.run.outcome or self.run.state
        )


RELATED = ("project", "suite__project", "target", "guidance", "by", "suite_version")
HEAVY = (
    "options",
    "fingerprint",
    "warnings",
    "target__definition",
    "guidance__files",
    "suite_version__targets_text",
    "suite_version__config",
    "suite_version__lints",
)
"""Columns that no list shows."""


def runs_of(project: Project | int) -> QuerySet[Run]:
    """Return the runs of a project or of its key with what every row of them shows; `is_stale` where their files do not fit the tool."""
    runs = Run.objects.filter(project=project).annotate(is_stale=STALE)
    return runs.select_related(*RELATED).defer(*HEAVY)


def rows(runs: Sequence[Run] | Sequence[ListedRun]) -> list[RunRow]:
    """Return the runs with their headline measures and verdicts. Two queries."""
    keys = tuple(run.pk for run in runs)
    measures: dict[int, dict[str, float]] = {}
    for run, layer, name, mean in _measures(keys):
        measures.setdefault(run, {})[SHOWN_MEASURES[layer, name]] = mean
    changes = {run: (verdict, before, after) for run, verdict, before, after in _headlines(keys)}
    return [_row(run, measures.get(run.pk, {}), changes.get(run.pk)) for run in runs]


@prepared
def _measures(runs: tuple[int, ...]) -> QuerySet[RunMeasure, tuple[int, str, str, float]]:
    wanted = Q()
    for layer, name in SHOWN_MEASURES:
        wanted |= Q(measure__layer=layer, measure__name=name)
    found = RunMeasure.objects.filter(wanted, run__in=runs, scenario=None)
    return found.values_list("run", "measure__layer", "measure__name", "mean")


@prepared
def _headlines(runs: tuple[int, ...]) -> QuerySet[Change, tuple[int, str, float | None, float | None]]:
    headline = Change.objects.filter(
        run__in=runs, scenario=None, measure__layer="trial", measure__name="pass"
    )
    return headline.values_list("run", "verdict", "before", "after")


def _row(
    run: Run | ListedRun, measures: dict[str, float], change: tuple[str, float | None, float | None] | None
) -> RunRow:
    verdict, before, after = change or ("", None, None)
    return RunRow(run, measures, verdict, None if before is None or after is None else after - before)


def matching_runs(project: Project, filters: Filters) -> QuerySet[Run]:
    """Return the runs that the filters leave, with what every row of them shows."""
    runs = runs_of(project)
    if filters.tag or filters.q:
        runs = runs.annotate(tags_text=Cast("tags", CharField()))
    return runs.filter(filters.condition())


def page_of_runs(project: Project, filters: Filters, before: str) -> tuple[Page[Any], list[RunRow]]:
    """Return one page of the runs that match, newest first. Three queries."""
    page = values_page(project, filters, before, listed, _newest)
    return page, rows(as_listed(page.rows))


def values_page(
    project: Project,
    filters: Filters,
    before: str,
    values: Callable[[QuerySet[Run]], QuerySet[Run, Any]],
    newest: Callable[[int, int], Sequence[Any]],
    *,
    size: int = SIZE,
) -> Page[Any]:
    """Return one page of the runs that match as plain values, their key first. One query.

    `newest` is the prepared query of a whole project: runs below a key, one more than a page of `SIZE` holds.
    """
    if filters.in_force or size != SIZE:
        return page_below(values(matching_runs(project, filters)), before, size=size, key_in=itemgetter(0))
    key = key_of(before)
    return cut(newest(project.pk, LARGEST_KEY if key is None else key), key, key_in=itemgetter(0))


@prepared
def _newest(project: int, below: int) -> QuerySet[Run, Any]:
    return listed(newest_runs(project, below))[: SIZE + 1]
