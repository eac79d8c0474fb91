"""Overruled scores, disagreements, calibrations, the queue of statements, and judging or grading again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Path, Query, Router, Schema, Status
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.columns import add_columns
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.pages import ListOut
from evalhub.web.rest.request_body import Key, Name, RequestBody
from evaluators.redaction import redact_json
from evaluators.statistics.calibration import Calibration, JudgeRate
from runs.engine.stored_trials.adopting import ReassessmentResult, adopt, read_newest_reassessments
from runs.engine.stored_trials.reassessing import request_reassessment
from runs.models import Overrule, Reassessment
from runs.models.review import Resolution, Right
from runs.results.lookup import find_run, find_trial
from runs.review.calibrations import calibration_of, judge_versions, repeated_judgings
from runs.review.overruling import overrule
from runs.review.reviewing import record_who_was_right
from runs.review.statement_groups import QueueFilters, StatementGroup, review_queue

router = Router(tags=["reviews"])
MOST_GROUPS = 100


class OverruleIn(RequestBody):
    """A score by its position among the trial's scores, its new verdict or number, and the reason."""

    score: Annotated[int, Field(ge=0, le=10_000)]
    criterion: Annotated[Text, Field(max_length=200)] = ""
    """A yes-or-no criterion of a `rubric` evaluator; then `passed` is the answer."""
    passed: bool | None = None
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """For the judge, its criteria and evaluators; the judge's verdict follows from its threshold."""
    reason: Annotated[Text, Field(min_length=1, max_length=5000)]


@add_columns(
    Overrule,
    *("id", "trial", "layer", "name", "criterion", "passed", "value"),
    *("reason", "by", "at", "undone", "undone_by"),
)
class OverruleOut(Schema):
    original: dict[str, Any]


class ResolutionIn(RequestBody):
    """Who was right where judge and gates disagree."""

    right: Right
    note: Annotated[Text, Field(max_length=5000)] = ""


@add_columns(Resolution, "trial", "right", "note", "by", "at")
class ResolutionOut(Schema):
    pass


class CalibrationOut(Schema):
    """One judge version compared with people's reviews of its verdicts."""

    model: str = Field(validation_alias="version.model")
    rubric: str = Field(validation_alias="version.rubric")
    calibrated: bool = Field(validation_alias="is_calibrated")
    needs: str
    whole: Calibration
    criteria: dict[str, Calibration]
    right_among_disagreements: JudgeRate = Field(validation_alias="among_disagreements")
    flip_rate: JudgeRate = Field(validation_alias="flips")


class QueueQuery(BaseModel):
    """The filters of the queue on the page."""

    suite: Text = ""
    tool_version: Text = ""
    guidance: Text = ""
    criterion: Text = ""
    judge: Text = ""
    unreviewed: Literal["", "yes"] = ""


class WordingOut(Schema):
    key: str
    text: str
    statements: list[str]
    """As `judging:polarity:position`."""


class GroupOut(Schema):
    """Statements of similar wording, the most frequent wording first."""

    polarity: str
    text: str
    statements: int
    trials: list[int]
    reviewed: int
    wordings: list[WordingOut]


class ReassessIn(RequestBody):
    """How to assess a run's stored trials again; no agent runs."""

    kind: Literal["judge", "grade"] = "judge"
    judge_model: Annotated[Text, Field(max_length=200)] = ""
    rubric: Name | None = None
    """A shipped rubric, such as `guidance`; null for each scenario's own."""
    max_usd: Annotated[float, Field(gt=0, le=1_000_000)] | None = None


class ReassessedTrialOut(Schema):
    trial: int
    scenario: str = Field(validation_alias="key")
    outcome: str = Field(validation_alias="before")
    new_outcome: str = Field(validation_alias="after")
    score: float | None = Field(validation_alias="score_before")
    new_score: float | None = Field(validation_alias="score_after")
    note: str


@add_columns(
    Reassessment,
    *("id", "run", "kind", "judge_model", "created", "finished", "adopted", "cost_usd", "error"),
    of="made.",
)
class ReassessmentOut(Schema):
    trials: list[ReassessedTrialOut] = Field(validation_alias="pairs")


class AdoptedOut(Schema):
    trials: int


@router.get("/trials/{trial_id}/overrules", auth=Bearer(), response=declare_answers(ListOut[OverruleOut]))
def list_overrules(request: ApiRequest, trial_id: Path[Key]) -> dict[str, Any]:
    """List a trial's overruled scores, oldest first."""
    rows = find_trial(request, trial_id).overrules.select_related("by", "undone_by")
    return {"items": rows}


@router.post(
    "/trials/{trial_id}/overrules", auth=Bearer("review"), response=declare_answers(OverruleOut, status=201)
)
def create_overrule(request: ApiRequest, trial_id: Path[Key], body: OverruleIn) -> Status[Overrule]:
    """Overrule a score's verdict or number; outcome, rollups and verdicts of its run follow."""
    trial, decision = find_trial(request, trial_id), body.model_dump()
    return Status(201, overrule(trial, decision.pop("score"), **decision, by=request.access.user))


@router.post("/trials/{trial_id}/resolution", auth=Bearer("review"), response=declare_answers(ResolutionOut))
def resolve_disagreement(request: ApiRequest, trial_id: Path[Key], body: ResolutionIn) -> Resolution:
    """Record who was right where judge and gates disagree."""
    trial = find_trial(request, trial_id)
    return record_who_was_right(trial, right=body.right.value, note=body.note, by=request.access.user)


@router.get("/judge-calibrations", auth=Bearer(), response=declare_answers(ListOut[CalibrationOut]))
def list_calibrations(request: ApiRequest) -> dict[str, Any]:
    """List the judge versions, each compared with people's labels."""
    project = request.access.project
    repeated = repeated_judgings(project)
    return {"items": [calibration_of(project, version, repeated) for version in judge_versions(project)]}


@router.get("/runs/{run_id}/reassessments", auth=Bearer(), response=declare_answers(ListOut[ReassessmentOut]))
def list_reassessments(request: ApiRequest, run_id: Path[Key]) -> dict[str, Any]:
    """List a run's newest reassessments with the new scores beside the stored ones."""
    return {"items": read_newest_reassessments(find_run(request, run_id))}


@router.post(
    "/runs/{run_id}/reassessments", auth=Bearer("run"), response=declare_answers(ReassessmentOut, status=201)
)
def create_reassessment(
    request: ApiRequest, run_id: Path[Key], body: ReassessIn
) -> Status[ReassessmentResult]:
    """Judge or grade a run's stored trials again; a worker does it. Nothing counts before it is adopted."""
    reassessment = request_reassessment(
        find_run(request, run_id),
        body.kind,
        by=request.access.user,
        judge_model=body.judge_model,
        rubric=body.rubric or "",
        max_usd=body.max_usd,
    )
    return Status(201, ReassessmentResult(reassessment))


@router.post(
    "/reassessments/{reassessment_id}/adopt", auth=Bearer("review"), response=declare_answers(AdoptedOut)
)
def adopt_reassessment(request: ApiRequest, reassessment_id: Path[Key]) -> dict[str, Any]:
    """Make the new scores count; the run is recomputed."""
    rows = Reassessment.objects.filter(run__project=request.access.project, pk=reassessment_id)
    reassessment = rows.first()
    if reassessment is None:
        raise not_found("reassessment", reassessment_id)
    return {"trials": adopt(reassessment, by=request.access.user)}


@router.get("/review-queue", auth=Bearer(), response=declare_answers(ListOut[GroupOut]))
def list_queue(request: ApiRequest, query: Query[QueueQuery]) -> dict[str, Any]:
    """List the most frequent 100 groups of similar statements on the newest runs."""
    filters = QueueFilters(**query.model_dump())
    groups, _ = review_queue(request.access.project, filters)
    return {"items": [_group(each) for each in groups[:MOST_GROUPS]]}


def _group(group: StatementGroup) -> dict[str, Any]:
    shown: dict[str, Any] = redact_json(
        {
            "text": group.text,
            "wordings": [
                {"key": wording.key, "text": wording.text, "statements": list(map(str, wording.references))}
                for wording in group.wordings
            ],
        }
    )
    return {
        "polarity": group.polarity,
        "statements": len(group.references),
        "trials": group.trials,
        "reviewed": group.reviewed,
        **shown,
    }
