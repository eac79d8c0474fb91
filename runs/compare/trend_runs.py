"""Read the runs of a trend and the choices of its filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import QueryDict

from evalhub.web.paging import key_of
from evaluators.statistics.measure_change import ChangeVerdict
from runs.models import Alert, Run
from runs.models.comparison import OF_SUITE, state_label
from runs.models.run import MAINLINE, NOT_CONFIRMING, OPEN, RunState, has_too_many_errors
from runs.models.run_options import DEFAULT_SECONDS
from runs.results.address_filters import AddressFilters
from runs.results.comparability import UNJUDGED, Configuration, ScoreSources, judge_named

MOST_RUNS = 100
"""Newest runs of a trend."""


@dataclass(frozen=True)
class TrendFilters(AddressFilters):
    """Filters of a query string; an empty text isn't a filter."""

    target: str = ""
    model: str = ""
    tool_version: str = ""
    guidance: str = ""
    """A key of `Guidance`."""
    branch: str = ""

    def condition(self) -> Q:
        """Return the filters as one condition on runs."""
        columns = {"target__name": self.target, "model": self.model, "tool_version": self.tool_version}
        condition = Q(**{column: value for column, value in columns.items() if value})
        if self.guidance:
            condition &= Q(guidance=key_of(self.guidance) or 0)
        return condition & Q(branch=self.branch) if self.branch else condition


class TrendRun(NamedTuple):
    """A closed run, as far as a trend shows it."""

    pk: int
    at: datetime
    tool_version: str
    guidance: int | None
    guidance_name: str
    target: str
    model: str
    branch: str
    configuration: Configuration
    """Without prices: a trend shows what was paid."""
    suite_number: int
    passed: int
    failed: int
    is_experiment: bool
    regressed: bool
    alert: str
    """The label of its alert's state; empty without one."""
    is_stale: bool
    """Whether the suite's files were outdated for the tool."""
    baseline: int | None
    completed: bool
    """Whether the run finished without an error of its own."""
    is_unusable: bool
    """Whether its errors or its tool are in the way of a verdict, or nothing checked its trials."""


_COLUMNS = (
    "pk",
    "at",
    "tool_version",
    "guidance",
    "guidance__name",
    "guidance__number",
    "target__name",
    "model",
    "branch",
    "options__judge",
    "options__threshold",
    "options__timeout_seconds",
    "fingerprint__judge",
    "fingerprint__judge_sha256",
    "fingerprint__adopted",
    "fingerprint__command_pattern",
    "counting",
    "suite_version",
    "suite_version__number",
    "passed",
    "failed",
    "errors",
    "not_started",
    "is_unchecked",
    "is_experiment",
    "verdict",
    "alert_state",
    "alert_kind",
    "fingerprint__staleness__stale",
    "baseline",
    "state",
    "error",
)


@dataclass(frozen=True)
class TrendChoices:
    """The values of a suite's newest runs, newest first."""

    targets: list[str]
    models: list[str]
    tool_versions: list[str]
    guidance: list[tuple[str, str]]
    branches: list[str]


class Mark(NamedTuple):
    """A change of what ran before the run at a position."""

    at: int
    flags: str
    words: str


def newest_runs_of_suite(suite: int, filters: TrendFilters) -> list[TrendRun]:
    """Return a suite's newest closed runs, oldest first. One query, by index."""
    return [_run(row) for row in _rows(suite, filters)][::-1]


def _rows(suite: int, filters: TrendFilters) -> QuerySet[Run, Any]:
    runs = (
        Run.objects.filter(filters.condition(), NOT_CONFIRMING, suite=suite)
        .exclude(state__in=OPEN)
        .order_by("-pk")
    )
    alerts = Alert.objects.filter(run=OuterRef("pk"), kind__in=OF_SUITE)
    return runs.annotate(
        at=Coalesce("finished", "created"),
        alert_state=Subquery(alerts.values("state")[:1]),
        alert_kind=Subquery(alerts.values("kind")[:1]),
    ).values(*_COLUMNS)[:MOST_RUNS]


def _run(row: Mapping[str, Any]) -> TrendRun:
    number = row["guidance__number"]
    return TrendRun(
        pk=row["pk"],
        at=row["at"],
        tool_version=row["tool_version"],
        guidance=row["guidance"],
        guidance_name=row["guidance__name"] or (f"guidance {number}" if number else ""),
        target=row["target__name"],
        model=row["model"],
        branch=row["branch"],
        configuration=_configuration(row),
        suite_number=row["suite_version__number"],
        passed=row["passed"],
        failed=row["failed"],
        is_experiment=row["is_experiment"],
        regressed=row["verdict"] == ChangeVerdict.REGRESSED,
        alert=state_label(row["alert_state"], row["alert_kind"]) if row["alert_state"] else "",
        is_stale=bool(row["fingerprint__staleness__stale"]),
        baseline=row["baseline"],
        completed=row["state"] == RunState.FINISHED and not row["error"],
        is_unusable=bool(row["not_started"])
        or row["is_unchecked"]
        or has_too_many_errors(row["passed"], row["failed"], row["errors"]),
    )


def _configuration(row: Mapping[str, Any]) -> Configuration:
    judged, name, sha256 = (
        row[key] for key in ("options__judge", "fingerprint__judge", "fingerprint__judge_sha256")
    )
    sources = ScoreSources(
        judge=judge_named(judged, name, sha256),
        pattern=row["fingerprint__command_pattern"] or "",
        threshold=row["options__threshold"],
        seconds=row["options__timeout_seconds"] or DEFAULT_SECONDS,
    )
    return Configuration(row["suite_version"], sources, row["fingerprint__adopted"], row["counting"])


def choices_of(runs: Sequence[TrendRun]) -> TrendChoices:
    """Return the choices of a trend's filters from runs, oldest first."""
    newest = runs[::-1]
    return TrendChoices(
        _distinct(run.target for run in newest),
        _distinct(run.model for run in newest),
        _distinct(run.tool_version for run in newest),
        list({str(run.guidance): run.guidance_name for run in newest if run.guidance}.items()),
        _distinct(run.branch for run in newest),
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]


def filters_of(query: QueryDict, runs: Sequence[TrendRun]) -> TrendFilters:
    """Read the filters; without a target or model in the address, choose those of the newest run.

    Runs of several targets aren't comparable, so a page opens with one of them.
    """
    filters = TrendFilters.of(query)
    if runs and "target" not in query and "model" not in query:
        return replace(filters, target=runs[-1].target, model=runs[-1].model)
    return filters


def is_of_line(run: TrendRun, filters: TrendFilters) -> bool:
    """Return whether a run counts for change points: measured, on the chosen or main branch, no experiment."""
    is_measured = run.completed and not run.is_unusable
    return is_measured and not run.is_experiment and run.branch in (filters.branch, *MAINLINE)


def marks(runs: Sequence[TrendRun]) -> list[Mark]:
    """Return the changes of tool (T), guidance (G), model (M), judge (J) and suite (S) between runs."""
    all_marks = []
    for at, (before, after) in enumerate(pairwise(runs), 1):
        changed = _find_changes(before, after)
        if changed:
            all_marks.append(Mark(at, "".join(changed), ", ".join(changed.values())))
    return all_marks


def _find_changes(before: TrendRun, after: TrendRun) -> dict[str, str]:
    old, new = before.configuration, after.configuration
    words: dict[str, tuple[object, object, str]] = {
        "T": (before.tool_version, after.tool_version, f"tool {after.tool_version or 'unknown'}"),
        "G": (before.guidance, after.guidance, after.guidance_name or "no guidance"),
        "M": (
            (before.target, before.model),
            (after.target, after.model),
            f"model {after.model or after.target}",
        ),
        "J": (old.sources.judge, new.sources.judge, _judge_words(new.sources.judge)),
        "S": (old.suite_version, new.suite_version, f"suite version {after.suite_number}"),
    }
    return {flag: text for flag, (one, other, text) in words.items() if one != other}


def _judge_words(judge: str) -> str:
    return "no judge" if judge == UNJUDGED else f"judge {judge.partition(' ')[0] or 'unknown'}"
