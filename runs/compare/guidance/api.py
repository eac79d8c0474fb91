"""Compare two versions of a suite's guidance."""

from __future__ import annotations

from typing import Any

from ninja import Path, Query, Router, Schema
from pydantic import BaseModel

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.request_body import Key
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from runs.compare.guidance.guidance_comparison import compare_chosen, comparison_json
from runs.compare.guidance.guidance_runs import settings_of
from runs.compare.guidance.lift_findings import StatementKind, is_lift, lift_json, read_lift
from scenarios.models import Guidance

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
    compared = compare_chosen(chosen) if chosen else None
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
