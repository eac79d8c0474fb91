"""The REST operation that compares two versions of guidance, and versions that improved their suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ninja import Path, Query, Router, Schema
from pydantic import BaseModel

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.teams.models import Project
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.request_body import Key
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from runs.compare.guidance.guidance_comparison import compare_pooled, comparison_json, settings_of
from runs.compare.guidance.lift_findings import StatementKind, is_lift, lift_json, read_lift
from runs.compare.lost_scenarios import ChangedScenario, largest_gains, pass_changes
from runs.compare.shown_changes import ShownChange
from runs.models import Run
from runs.models.run import NOT_CONFIRMING, RunState
from runs.results.digests import digests_of
from scenarios.differences import DiffLine, lines_of, text_difference
from scenarios.models import Guidance

MOST_READ = 400
"""The newest runs with guidance that are looked through."""
GAINS_SHOWN = 3
LINES_SHOWN = 6


@dataclass(frozen=True)
class ImprovedGuidance:
    """A version with which a run improved on its baseline, which had another and the same tool."""

    before: Guidance
    after: Guidance
    change: ShownChange
    """The pass rate's."""
    run: Run
    gained: Sequence[ChangedScenario]
    """The scenarios that pass more often than in the baseline, the largest gain first."""
    changed_lines: Sequence[DiffLine]
    """The lines that were added or removed."""

    @property
    def document(self) -> str:
        """The name of the version's first document."""
        return str(self.after.files[0]["path"]).rpartition("/")[2] if self.after.files else "guidance"

    @property
    def shown_lines(self) -> Sequence[DiffLine]:
        return self.changed_lines[:LINES_SHOWN]


class _Row(NamedTuple):
    run: int
    baseline: int
    finished: datetime
    verdict: str
    suite: int
    guidance: int
    before: int
    tool: str
    tool_before: str
    is_lift: bool | None

    @property
    def is_by_guidance(self) -> bool:
        """Whether another guidance, with the same tool, improved it; lifts have cards of their own."""
        return (
            not self.is_lift
            and self.verdict == ChangeVerdict.IMPROVED
            and self.guidance != self.before
            and self.tool == self.tool_before
        )


_COLUMNS = (
    *("pk", "baseline_id", "finished", "verdict", "suite_id", "guidance_id", "baseline__guidance_id"),
    *("tool_version", "baseline__tool_version", "options__lift"),
)


def improved_guidance(project: Project, *, since: datetime, most: int) -> list[ImprovedGuidance]:
    """Return the versions whose newest run since then improved by the pass rate, the surest first.

    One query, four more where there are such versions.
    """
    runs = Run.objects.filter(NOT_CONFIRMING, project=project, state=RunState.FINISHED, finished__gte=since)
    both = runs.exclude(guidance=None).exclude(baseline__guidance=None).order_by("-pk")
    newest: dict[tuple[int, int], _Row] = {}
    for row in (_Row(*values) for values in both.values_list(*_COLUMNS)[:MOST_READ]):
        newest.setdefault((row.suite, row.guidance), row)
    better = {row.run: row for row in newest.values() if row.is_by_guidance}
    changes = {
        run: change
        for run, change in (pass_changes(list(better)) if better else {}).items()
        if change.verdict is ChangeVerdict.IMPROVED
    }
    surest = sorted(changes, key=lambda run: _certainty(changes[run]), reverse=True)[:most]
    if not surest:
        return []
    loaded = (
        Run.objects.select_related("suite", "target")
        .only("finished", "suite__name", "target__name")
        .in_bulk(surest)
    )
    keys = {key for run in surest for key in (better[run].before, better[run].guidance)}
    versions = Guidance.objects.in_bulk(keys)
    digests = digests_of([key for run in surest for key in (run, better[run].baseline)])
    improved = []
    for run in surest:
        row = better[run]
        before, after = versions[row.before], versions[row.guidance]
        old, new = digests.get(row.baseline), digests.get(run)
        gained = largest_gains(old, new, GAINS_SHOWN) if old and new else []
        shown = ShownChange(changes[run])
        improved.append(
            ImprovedGuidance(before, after, shown, loaded[run], gained, _changed_lines(before, after))
        )
    return improved


def _certainty(change: MeasureChange) -> tuple[float, int]:
    """Return the least by which the pass rate rose, and the number of trials."""
    return change.lower or 0.0, sum(change.trials)


def _changed_lines(before: Guidance, after: Guidance) -> list[DiffLine]:
    old, new = ({each["path"]: each["content"] for each in side.files} for side in (before, after))
    pairs = ((lines_of(old.get(path, "")), lines_of(new.get(path, ""))) for path in {**old, **new})
    differences = [text_difference(*pair) for pair in pairs]
    return [
        line
        for difference in differences
        if difference
        for hunk in difference.hunks
        for line in hunk
        if line.look
    ]


router = Router(tags=["guidance"])


class SettingOut(Schema):
    target: str
    model: str
    tool_version: str


class GuidanceScenarioOut(Schema):
    """A scenario's pass rate on both sides."""

    scenario: str
    before: float | None
    after: float | None
    verdict: ChangeVerdict


class LiftStatementOut(Schema):
    """A statement or a gate of a case, and the share of trials of each arm in which it held."""

    scenario: str
    name: str
    text: str
    kind: StatementKind
    without: float
    with_skill: float


class DearerCaseOut(Schema):
    """A case in which the skill raised a measure, and by what share."""

    scenario: str
    measure: str
    growth: float


class PreviousArmOut(Schema):
    """What changed since the skill's previous version, which ran as a third arm."""

    guidance: int
    name: str
    runs: list[int]
    verdict: ChangeVerdict | None
    """Of the pass rate, tested once after the last look."""
    sentence: str


class BenchmarkMeanOut(Schema):
    """The mean share of statements of a configuration, from 0 to 1; null where it was not measured here."""

    configuration: str
    said: float
    here: float | None


class BenchmarkOut(Schema):
    """What skill-creator's benchmark.json says of the skill, beside the same here."""

    sentence: str
    means: list[BenchmarkMeanOut]


class LiftOut(Schema):
    """What a skill adds, where A is B without its skill."""

    setting: SettingOut
    verdict: ChangeVerdict | None
    """Of the pass rate."""
    sentence: str
    previous: PreviousArmOut | None
    """Null where no previous version ran beside the skill."""
    benchmark: BenchmarkOut | None
    """Null unless a benchmark.json was there when the lift started."""
    statements: list[LiftStatementOut]
    dearer: list[DearerCaseOut]


class GuidanceComparisonOut(Schema):
    """Two versions of guidance over the runs that had each; without runs of both in one setting, without measures."""

    before: int
    after: int
    verdict: ChangeVerdict | None
    setting: SettingOut | None
    interleaved: bool
    """Whether each run has its counterpart in the same launch."""
    runs_before: list[int]
    runs_after: list[int]
    scenarios: list[GuidanceScenarioOut]
    """The largest drop first."""
    measures: list[MeasureChange]
    lift: LiftOut | None
    """What the skill adds; null unless A is B without its skill."""


class SettingQuery(BaseModel):
    """The target, model and tool version; default: interleaved launches first, then the newest."""

    target: Text = ""
    model: Text | None = None
    tool_version: Text | None = None


@router.get("/guidance/{a}/against/{b}", auth=Bearer(), response=declare_answers(GuidanceComparisonOut))
def compare_guidance(
    request: ApiRequest, a: Path[Key], b: Path[Key], query: Query[SettingQuery]
) -> dict[str, Any]:
    """Compare guidance B with guidance A over the runs that had each."""
    before, after = _find(request, a), _find(request, b)
    if before.suite_id != after.suite_id or before == after:
        raise ApiError(
            422, "Name two versions of one suite's guidance. List its guidance.", id="guidance/compare"
        )
    asked = query.model_dump(exclude_defaults=True)
    fitting = (
        candidate
        for candidate in settings_of(before, after)
        if all(getattr(candidate.setting, name) == value for name, value in asked.items())
    )
    found_setting = next(fitting, None)
    chosen = found_setting.load() if found_setting else None
    compared = compare_pooled(chosen) if chosen else None
    lift = read_lift(chosen, compared) if chosen and is_lift(before, after) else None
    return {
        **comparison_json(before, after, chosen, compared),
        "lift": lift_json(lift) if lift else None,
    }


def _find(request: ApiRequest, pk: int) -> Guidance:
    guidance = Guidance.objects.filter(suite__project=request.access.project, pk=pk).first()
    if guidance is None:
        raise not_found("guidance", pk)
    return guidance
