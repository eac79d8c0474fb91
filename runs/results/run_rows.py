"""Define a run's row for lists, REST and exports, read in one query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evalhub.lib.value import Moment
from runs.models import Run, Trial
from runs.models.run import (
    COST_UNKNOWN,
    RunState,
    cost_per_success,
    has_estimates,
    no_verdict,
    reason_without_verdict,
    seconds_between,
)

Blank = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""A column that is empty if unknown."""
SHORT_HASH = 8
TOOL_FORGE = "tool_forge"
OPEN = (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)


class TokenTotals(BaseModel):
    """Input and output tokens of a run's models."""

    model_config = ConfigDict(from_attributes=True)

    input: int
    output: int


class ListedRun(BaseModel):
    """A run without its trials; relations appear as names."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    suite: str
    suite_version: int
    format: str
    target: str
    model: Blank
    state: str
    outcome: Blank
    launch: int
    created: Moment
    started: Moment | None
    finished: Moment | None
    by: str | None
    trigger: str
    tags: list[str]
    branch: Blank
    commit: Blank
    trials: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    pass_rate: float | None
    """The mean over scenarios, without errors; null before the end and where no trial passed or failed."""
    tool_version: Blank
    guidance: str | None
    """First digits of the guidance's hash."""
    guidance_name: str | None
    guidance_path: Blank
    """Path in the workspace that the document of its guidance took; null for guidance uploaded with the suite."""
    cost_usd: float | None
    cost_is_partial: bool
    """Whether its cost is a lower bound, because that of some trials is unknown."""
    cost_per_success: float | None
    """In USD, judges included, for each passed trial; null if unknown or none passed."""
    tokens: TokenTotals
    seconds: float | None
    """Wall-clock time, None before the end or if unknown."""
    baseline: int | None
    verdict: Blank
    """Against the baseline: regressed, improved, equivalent, no_evidence, too_little or not_comparable."""
    verdict_reason: Blank
    """Why it has no verdict; else null.

    errors: a third or more of its trials hit errors. tool_not_started: its agents called the tool, which never started.
    unchecked: nothing checked its trials. Of the first two, a run is never a baseline.
    """
    no_verdict: str
    """The same in sentences, with what to do; empty if nothing prevents a verdict."""
    experiment: bool
    """Never a baseline, never an alert."""
    configuration_changed: bool
    """Its guidance was adopted after its baseline ran."""
    stale: Annotated[bool, BeforeValidator(bool)]
    """The eval cases were generated for another description of their tool."""
    error: str
    url: str
    suite_name: str = Field("", exclude=True)
    """For pages; elsewhere the slug names the suite."""
    release_k: int | None = Field(None, exclude=True)
    release_threshold: float | None = Field(None, exclude=True)
    """For pages: its suite's release rule."""
    not_started: str = Field("", exclude=True)
    is_unchecked: bool = Field(False, exclude=True)
    """For pages: see the run's columns."""
    is_estimated: bool = Field(False, exclude=True)
    """For pages: whether ends of its commands are estimated from text."""
    is_lift: bool | None = Field(None, exclude=True)
    asked_baseline: int | str | None = Field(None, exclude=True)
    """For pages: the run that its request compares it with. Of a lift's arms, only the one with the skill has one."""
    guidance_key: int | None = Field(None, exclude=True)
    guidance_before: int | None = Field(None, exclude=True)
    """For pages: the keys of its guidance and its baseline's."""

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_experiment(self) -> bool:
        return self.experiment

    @property
    def needs_all(self) -> bool:
        """Whether every trial has to pass."""
        return self.format == TOOL_FORGE or (self.release_threshold or 0.0) >= 1.0


COST_IS_PARTIAL = Q(cost_usd__isnull=False) & Exists(Trial.objects.filter(COST_UNKNOWN, run=OuterRef("pk")))
"""Whether the cost of some of a run's trials isn't known, and that of others is; in queries of runs."""
_SAME = (
    *("model", "state", "outcome", "created", "started", "finished", "trigger", "tags", "branch", "commit"),
    *("trials", "passed", "failed", "errors", "cancelled", "pass_rate", "tool_version", "cost_usd", "error"),
    *("configuration_changed", "not_started", "is_unchecked", "cost_is_partial"),
)
_COLUMNS = {name: name for name in _SAME} | {
    "id": "pk",
    "suite": "suite__slug",
    "suite_name": "suite__name",
    "suite_version": "suite_version__number",
    "format": "suite__format",
    "release_k": "suite__release_k",
    "release_threshold": "suite__release_threshold",
    "target": "target__name",
    "launch": "launch_id",
    "by": "by__username",
    "baseline": "baseline_id",
    "guidance_path": "guidance__laid_path",
    "experiment": "is_experiment",
    "is_lift": "options__lift",
    "asked_baseline": "options__baseline",
    "guidance_key": "guidance_id",
    "guidance_before": "baseline__guidance_id",
    "stale": "fingerprint__staleness__stale",
}
"""Columns copied from the query."""
_MORE = (
    "verdict",
    "tokens_in",
    "tokens_out",
    "guidance__sha256",
    "guidance__name",
    "guidance__number",
    "counting",
    "unjudged",
    "retest_usd",
)


def listed_values(runs: QuerySet[Run]) -> QuerySet[Run, Any]:
    """Return the query's rows as `as_listed` takes them, their key as `pk`."""
    plain = runs.select_related(None).defer(None).annotate(cost_is_partial=COST_IS_PARTIAL)
    values: QuerySet[Run, Any] = plain.values(*_COLUMNS.values(), *_MORE)
    return values


def as_listed(rows: Iterable[Mapping[str, Any]]) -> list[ListedRun]:
    """Return the rows of `listed_values` as runs."""
    return [_as_listed(row) for row in rows]


def listed_runs(keys: Sequence[int]) -> list[ListedRun]:
    """Return runs in the order of their keys. One query."""
    runs = {run.id: run for run in as_listed(listed_values(Run.objects.filter(pk__in=keys)))}
    return [runs[key] for key in keys]


class _Outcomes(NamedTuple):
    """What a missing verdict needs of a row."""

    id: int
    passed: int
    failed: int
    errors: int
    unjudged: int
    not_started: str
    is_unchecked: bool


def _as_listed(row: Mapping[str, Any]) -> ListedRun:
    sha256, number = row["guidance__sha256"], row["guidance__number"]
    outcomes = _Outcomes(row["pk"], *(row[name] for name in _Outcomes._fields[1:]))
    reason = "" if row["state"] in OPEN else reason_without_verdict(outcomes)
    return ListedRun(
        **{name: row[column] for name, column in _COLUMNS.items()},
        guidance=sha256[:SHORT_HASH] if sha256 else None,
        guidance_name=row["guidance__name"] or (f"guidance {number}" if number else None),
        cost_per_success=cost_per_success(row["cost_usd"], row["retest_usd"], row["passed"]),
        tokens=TokenTotals(input=row["tokens_in"], output=row["tokens_out"]),
        verdict=None if reason else row["verdict"],
        verdict_reason=reason,
        no_verdict=no_verdict(outcomes) if reason else "",
        seconds=seconds_between(row["started"], row["finished"]),
        url=f"/runs/{row['pk']}/",
        is_estimated=has_estimates(row["counting"]),
    )
