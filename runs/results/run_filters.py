"""Filter a list of runs by its query string, and read the choices of each filter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any, Self
from urllib.parse import urlencode

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, Func, Q, QuerySet, TextField
from django.db.models.sql.compiler import SQLCompiler
from django.http import QueryDict

from evalhub.lib.numbers import format_date
from evalhub.teams.models import Project
from evalhub.web.paging import key_of
from runs.models import Run, Target
from runs.models.comparison import VERDICTS
from runs.models.run import OPEN
from runs.results.address_filters import AddressFilters
from scenarios.models import Guidance, Suite

RECENT = 100
"""Recent runs whose models, tool versions, tags and people are offered."""
MOST_GUIDANCE = 100
MOST_TAGS = 30


@dataclass(frozen=True)
class Choices:
    """The choices of a project's run filters."""

    suites: list[tuple[str, str]]
    targets: list[str]
    models: list[str]
    tool_versions: list[str]
    """Newest runs first."""
    guidance: list[tuple[int, str]]
    tags: list[tuple[str, int]]
    """The most frequent first."""
    people: list[str]

    @property
    def tag_names(self) -> list[str]:
        """Return the tags by name."""
        return sorted(tag for tag, _ in self.tags)


def read_filter_choices(project: Project) -> Choices:
    """Return the choices of a project's run filters. Four queries.

    Models, tool versions and tags come from its recent runs, so the cost stays constant.
    """
    runs = Run.objects.filter(project=project.pk).order_by("-pk")
    recent = list(runs.values_list("model", "tool_version", "tags", "by__username")[:RECENT])
    tags = Counter(tag for _, _, tags, _ in recent for tag in tags)
    return Choices(
        list(Suite.objects.filter(project=project).values_list("slug", "name")),
        list(Target.objects.filter(project=project).values_list("name", flat=True)),
        sorted({model for model, *_ in recent if model}),
        list(dict.fromkeys(version for _, version, *_ in recent if version)),
        [(pk, name or f"guidance {number}") for pk, name, number in _guidance(project.pk)],
        tags.most_common(MOST_TAGS),
        sorted({name for *_, name in recent if name}),
    )


def _guidance(project: int) -> QuerySet[Guidance, tuple[int, str, int]]:
    guidance = Guidance.objects.filter(suite__project=project).order_by("-pk")
    return guidance.values_list("pk", "name", "number")[:MOST_GUIDANCE]


class TagLines(Func):
    """The texts of a JSON list between line feeds; empty for an empty list.

    The JSON text itself doesn't work: databases escape it differently, and brackets and commas would match.
    """

    arity = 1
    output_field = TextField()
    template = (
        "COALESCE((SELECT char(10) || group_concat(value, char(10)) || char(10)"
        " FROM json_each(%(expressions)s)), '')"
    )

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        """Return the SQL for PostgreSQL."""
        template = (
            "COALESCE((SELECT chr(10) || string_agg(value, chr(10)) || chr(10)"
            " FROM jsonb_array_elements_text(%(expressions)s)), '')"
        )
        return self.as_sql(compiler, connection, template=template, **context)


OUTCOMES = ("pass", "fail", "error")
STATES = (
    ("pass", "passed"),
    ("fail", "failed"),
    ("error", "error"),
    ("open", "in progress"),
    ("cancelled", "cancelled"),
)
DAYS = ("since", "until")
WORDS = {"q": "text", "tool_version": "tool version", "by": "started by"}
"""Filters whose labels differ from their query parameters."""


@dataclass(frozen=True)
class RunListFilters(AddressFilters):
    """Filters of a query string; an empty one matches every run, and any of several values may match."""

    q: str = ""
    suite: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    tool_version: tuple[str, ...] = ()
    guidance: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    """`ChangeVerdict` against the baseline."""
    state: tuple[str, ...] = ()
    """Outcomes, `open` and `cancelled`."""
    by: tuple[str, ...] = ()
    """Names of the people who started it."""
    since: str = ""
    """Earliest day of the request, as 2026-11-09, in UTC."""
    until: str = ""
    """Latest day."""
    col: tuple[str, ...] = ()
    """Shown columns; no filter, but a part of the address."""

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        """Read the filters of a query string; ignore everything else and invalid days."""
        filters = super().of(query)
        days = (_day(filters.since), _day(filters.until))
        since, until = (day.isoformat() if day else "" for day in days)
        return replace(filters, since=since, until=until)

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Return name and value of the active filters."""
        return [(name, value) for name, value in super().in_force if name != "col"]

    @property
    def query(self) -> str:
        """Return filters and columns as a query string."""
        return urlencode([*self.in_force, *(("col", each) for each in self.col)])

    def condition(self) -> Q:
        """Return the filters as one condition on runs annotated with `tag_lines`."""
        conditions = Q()
        for column, values in (
            ("suite__slug", self.suite),
            ("target__name", self.target),
            ("model", self.model),
            ("tool_version", self.tool_version),
            ("verdict", self.verdict),
            ("by__username", self.by),
        ):
            if values:
                conditions &= Q(**{f"{column}__in": values})
        if self.guidance:
            conditions &= Q(guidance__in=[key_of(text) or 0 for text in self.guidance])
        tags = Q()
        for tag in self.tag:
            # Whole lines, so that `night` does not find `nightly`.
            tags |= Q(tag_lines__contains=f"\n{tag}\n")
        return conditions & tags & self._state() & self._days() & self._text()

    def _state(self) -> Q:
        states = Q()
        for state in self.state:
            if state == "open":
                states |= Q(state__in=OPEN)
            else:
                states |= Q(outcome=state) if state in OUTCOMES else Q(state=state)
        return states

    def _days(self) -> Q:
        first, last = _day(self.since), _day(self.until)
        days = Q(created__gte=datetime.combine(first, time(), UTC)) if first else Q()
        # The whole last day counts.
        return days & Q(created__lte=datetime.combine(last, time.max, UTC)) if last else days

    def _text(self) -> Q:
        if not self.q:
            return Q()
        number = key_of(self.q.lstrip("#"))
        matches = (
            Q(suite__name__icontains=self.q) | Q(target__name__icontains=self.q) | Q(model__icontains=self.q)
        )
        matches |= (
            Q(by__username__icontains=self.q)
            | Q(tool_version__icontains=self.q)
            | Q(tag_lines__icontains=self.q)
        )
        return matches | Q(pk=number) if number is not None else matches


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class InForce:
    """An active filter with its label, and the list's query string without it."""

    name: str
    value: str
    without: str
    left: int | None = None
    """Runs that match the other filters; None if not counted."""


def active_run_filters(
    filters: RunListFilters, choices: Choices, left: dict[str, int] | None = None
) -> list[InForce]:
    """Return the active filters with their labels and the number of runs without each."""
    return [
        InForce(
            WORDS.get(name, name),
            _value_label(name, value, choices),
            filters.without(name, value).query,
            left[name] if left else None,
        )
        for name, value in filters.in_force
    ]


def _value_label(name: str, value: str, choices: Choices) -> str:
    if name in DAYS:
        return format_date(date.fromisoformat(value))
    known = {
        "suite": choices.suites,
        "guidance": [(str(pk), called) for pk, called in choices.guidance],
        "state": STATES,
        "verdict": VERDICTS,
    }
    return dict(known.get(name, ())).get(value, value)


def with_tag_lines(runs: QuerySet[Run], filters: RunListFilters) -> QuerySet[Run]:
    """Return the runs annotated for `RunListFilters.condition`."""
    return runs.annotate(tag_lines=TagLines("tags")) if filters.tag or filters.q else runs


def left_without(project: Project, filters: RunListFilters) -> dict[str, int]:
    """Return for each active filter how many runs match the others. One query over the project's runs."""
    runs = with_tag_lines(Run.objects.filter(project=project).order_by(), filters)
    counts = {
        name: Count("pk", filter=Q(pk__gt=0) & filters.without(name).condition())
        for name in dict(filters.in_force)
    }
    counted = runs.aggregate(**{f"without_{name}": count for name, count in counts.items()})
    return {name: counted[f"without_{name}"] for name in counts}
