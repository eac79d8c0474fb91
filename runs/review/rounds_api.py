"""Review rounds with blind labels, and the queue of judges' statements."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db.models import QuerySet
from ninja import Path, Query, Router, Schema, Status
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.lib.timestamps import moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.pages import ListOut
from evalhub.web.rest.request_body import Key, RequestBody
from evaluators.redaction import redact_json
from runs.models import ReviewRound, RoundItem
from runs.review.calibrations import JudgeVersion
from runs.review.review_rounds import assign, decide_item, draw, member_named, rounds_of
from runs.review.statement_groups import QueueFilters, StatementGroup, review_queue

router = Router(tags=["reviews"])
MOST_GROUPS = 100
ANSWERS = {"pass": True, "fail": False, "unclear": None}
Person = Annotated[Text, Field(max_length=150)] | None
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class RoundIn(RequestBody):
    """A random sample of a judge version's judgings; stratified: as many that it passed as that it failed."""

    model: Annotated[Text, Field(max_length=200)]
    rubric: Annotated[Text, Field(max_length=12)]
    n: Annotated[int, Field(ge=1, le=500)] = 60
    suite: Annotated[Text, Field(max_length=200)] = ""
    """A suite's slug; empty for all suites."""
    stratified: bool = True


class RoundOut(Schema):
    id: int
    model: str
    rubric: str
    suite: str | None
    stratified: bool
    labelled: int
    total: int
    created: str


class RoundItemOut(Schema):
    """An item of a round; what the judge said is null until it is labelled."""

    id: int
    position: int
    trial: int
    scenario: str
    criteria: list[str]
    """What to label beside the whole, by id."""
    assignee: str | None
    labelled: bool
    answer: Literal["pass", "fail", "unclear"] | None
    criteria_answers: dict[str, bool]
    note: str
    by: str | None
    at: str | None
    judge_passed: bool | None
    judge_criteria: dict[str, bool] | None


class RoundDetailOut(RoundOut):
    items: list[RoundItemOut]


class BlindItemOut(RoundItemOut):
    """An item with the agent's task and answer, redacted."""

    task: str
    agent_answer: str


class LabelIn(RequestBody):
    """A person's answer, made without seeing the judge's."""

    answer: Literal["pass", "fail", "unclear"]
    criteria: Annotated[dict[Text, bool], Field(max_length=200)] = {}
    note: Annotated[Text, Field(max_length=5000)] = ""


class AssigneeIn(RequestBody):
    """The new assignee by username, and the one that you saw; null for nobody."""

    assignee: Person = None
    seen: Person = None


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


def _round(row: ReviewRound, total: int, done: int) -> dict[str, Any]:
    return {
        "id": row.pk,
        "model": row.model,
        "rubric": row.rubric,
        "suite": row.suite.slug if row.suite else None,
        "stratified": row.is_stratified,
        "labelled": done,
        "total": total,
        "created": moment(row.created),
    }


def _detail(review_round: ReviewRound) -> dict[str, Any]:
    items = [_item(each) for each in _items(review_round.items.all())]
    return {**_round(review_round, len(items), sum(each["labelled"] for each in items)), "items": items}


def _items(rows: QuerySet[RoundItem]) -> QuerySet[RoundItem]:
    related = rows.select_related("judging__trial__scenario", "by", "assignee")
    return related.defer("judging__content", "judging__trial__scores", "judging__trial__detail")


def _item(row: RoundItem) -> dict[str, Any]:
    is_labelled = row.at is not None
    trial = row.judging.trial
    return {
        "id": row.pk,
        "position": row.position,
        "trial": trial.pk,
        "scenario": trial.scenario.key,
        "criteria": sorted(row.judge_criteria),
        "assignee": row.assignee.get_username() if row.assignee else None,
        "labelled": is_labelled,
        "answer": next(name for name, each in ANSWERS.items() if each is row.passed) if is_labelled else None,
        "criteria_answers": row.criteria,
        "note": row.note,
        "by": row.by.get_username() if row.by else None,
        "at": moment(row.at) if row.at else None,
        "judge_passed": row.judge_passed if is_labelled else None,
        "judge_criteria": row.judge_criteria if is_labelled else None,
    }


def _find_round(request: ApiRequest, key: int) -> ReviewRound:
    review_round = rounds_of(request.access.project).filter(pk=key).first()
    if review_round is None:
        raise not_found("review round", key)
    return review_round


def _find_item(request: ApiRequest, key: int) -> RoundItem:
    rows = _items(RoundItem.objects.filter(round__project=request.access.project))
    items = rows.select_related(
        "round__project", "judging__trial__scenario_version", "judging__trial__scenario"
    )
    item = items.filter(pk=key).first()
    if item is None:
        raise not_found("review item", key)
    return item


def _find_member(request: ApiRequest, name: str | None) -> int | None:
    """Return the key of the assignee that was seen; -1, which matches nobody, for an unknown name."""
    if not name:
        return None
    member = User.objects.filter(memberships__project=request.access.project, username=name).first()
    return member.pk if member else -1


@router.get("/review-rounds", auth=Bearer(), response=declare_answers(ListOut[RoundOut]))
def list_rounds(request: ApiRequest) -> dict[str, Any]:
    """List the newest 100 review rounds."""
    rows = rounds_of(request.access.project)[:100]
    return {"items": [_round(each, vars(each)["total"], vars(each)["done"]) for each in rows]}


@router.post("/review-rounds", auth=Bearer("review"), response=declare_answers(RoundDetailOut, status=201))
def create_round(request: ApiRequest, body: RoundIn) -> Status[dict[str, Any]]:
    """Draw a judge version's judgings at random, for people to label."""
    version = JudgeVersion(body.model, body.rubric)
    review_round = draw(
        request.access.project,
        version,
        body.n,
        by=request.access.user,
        suite=body.suite,
        is_stratified=body.stratified,
    )
    return Status(201, _detail(review_round))


@router.get("/review-rounds/{round_id}", auth=Bearer(), response=declare_answers(RoundDetailOut))
def get_round(request: ApiRequest, round_id: Path[Key]) -> dict[str, Any]:
    """Get a round with its items."""
    return _detail(_find_round(request, round_id))


@router.get("/review-items/{item_id}", auth=Bearer(), response=declare_answers(BlindItemOut))
def get_round_item(request: ApiRequest, item_id: Path[Key]) -> dict[str, Any]:
    """Get an item with what a person needs to label it."""
    item = _find_item(request, item_id)
    trial = item.judging.trial
    texts = {"task": trial.scenario_version.content.get("prompt") or "", "agent_answer": trial.answer}
    shown: dict[str, Any] = redact_json(texts)
    return {**_item(item), **shown}


@router.post("/review-items/{item_id}/label", auth=Bearer("review"), response=declare_answers(RoundItemOut))
def label_round_item(request: ApiRequest, item_id: Path[Key], body: LabelIn) -> dict[str, Any]:
    """Label an item; the first label counts."""
    item = _find_item(request, item_id)
    answer = ANSWERS[body.answer]
    decide_item(item, passed=answer, criteria=body.criteria, note=body.note, by=request.access.user)
    return _item(_find_item(request, item_id))


@router.post(
    "/review-items/{item_id}/assignee", auth=Bearer("review"), response=declare_answers(RoundItemOut)
)
def assign_round_item(request: ApiRequest, item_id: Path[Key], body: AssigneeIn) -> dict[str, Any]:
    """Assign an item to a member of the project, or to nobody."""
    item = _find_item(request, item_id)
    person = member_named(request.access.project, body.assignee or "")
    assign(item, person, seen=_find_member(request, body.seen))
    return _item(_find_item(request, item_id))


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
