"""Trials with their scores, commands, transcripts and artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from django.http import FileResponse
from ninja import Path, Query, Router, Schema
from pydantic import BaseModel, Field

from evalhub.lib.limits import LONGEST_TEXT
from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import REFUSALS, ApiError, ErrorOut, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key
from evaluators.model import Transcript
from evaluators.redaction import redact_json
from runs.exchange.exports.document import gates_and_scores_json, trial_facts, trial_json
from runs.models import Artifact, CommandRecord, TranscriptRecord, Trial
from runs.models.trial import json_of
from runs.results.files.artifacts import StoredFileUnavailable, open_kept
from runs.results.lookup import find_run, find_trial
from runs.results.schemas import AttemptOut, TrialOut, TrialRowOut, TrialScoresOut, UsageOut
from runs.review.judging_facts import waiting_round

router = Router(tags=["trials"])

JUDGED = ("judge", "evaluators")
"""Layers with a judge's answer in them."""


class TrialFilters(Cursor):
    """Filters of a run's trials."""

    outcome: Literal["", "pass", "fail", "error"] = ""
    scenario: Text = ""


class JudgeQuery(BaseModel):
    """Whether to show a judge's answer that waits for a label in a review round."""

    judge: Literal["", "show"] = ""


class CommandOut(Schema):
    n: int
    line: str
    subcommand: str
    exit_code: int | None
    failed: bool
    help: bool
    retry_of: int | None
    event: int | None
    failure: str
    """Why a call of an MCP server failed: unknown_tool, arguments, is_error or protocol."""
    end: str
    """How its end is known: recorded, reported, estimated or unknown; empty in trials counted by the first rules."""
    at_least: bool
    """Whether it ran at least once, such as in a loop."""
    seconds: float | None
    """The time it ran, if recorded."""


class Events(BaseModel):
    """A range of a transcript's events."""

    start: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, Field(ge=1, le=5_000)] = 1_000


class TranscriptOut(Schema):
    source: str
    total_events: int
    events: list[dict[str, Any]]
    text: str
    text_complete: bool
    answer: str
    usage: UsageOut | None
    problems: list[str]


class ArtifactOut(Schema):
    name: str
    sha256: str
    size: int
    media_type: str


class ArtifactsOut(Schema):
    items: list[ArtifactOut]


class CommandsOut(Schema):
    items: list[CommandOut]


@router.get("/runs/{run_id}/trials", auth=Bearer(), response=declare_answers(PageOut[TrialRowOut]))
def list_trials(request: ApiRequest, run_id: Path[Key], filters: Query[TrialFilters]) -> dict[str, Any]:
    """List a run's trials, last queued first."""
    trials = Trial.objects.select_related("scenario").filter(run=find_run(request, run_id))
    if filters.outcome:
        trials = trials.filter(outcome=filters.outcome)
    if filters.scenario:
        trials = trials.filter(scenario__key=filters.scenario)
    return page_of(request, trials.defer("scores", "detail", "answer"), filters, _rows)


def _rows(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    return [
        {
            **trial_facts(trial),
            "run": trial.run_id,
            "cost_usd": trial.cost_usd,
            "error": redact_json(trial.error),
        }
        for trial in trials
    ]


@router.get("/trials/{trial_id}", auth=Bearer(), response=declare_answers(TrialOut))
def get_trial(request: ApiRequest, trial_id: Path[Key], query: Query[JudgeQuery]) -> dict[str, Any]:
    """Get one trial with the scores of every layer.

    While it waits for a label in a review round, `judge_hidden` says so and the judge's answer is missing.
    """
    trial = find_trial(request, trial_id)
    names = trial.artifacts.values_list("name", flat=True)
    attempts = redact_json(list(trial.attempts.values(*AttemptOut.model_fields)))
    document = {**trial_json(trial, trial.judgings.all(), names), "attempts": attempts}
    return _without_judge(document, _why_hidden(trial, query))


@router.get("/trials/{trial_id}/scores", auth=Bearer(), response=declare_answers(TrialScoresOut))
def get_scores(request: ApiRequest, trial_id: Path[Key], query: Query[JudgeQuery]) -> Any:
    """Get a trial's scores, by layer; without the judge's while it waits for a label in a review round."""
    trial = find_trial(request, trial_id)
    return _without_judge(redact_json(gates_and_scores_json(trial.scores)), _why_hidden(trial, query))


def _why_hidden(trial: Trial, query: JudgeQuery) -> str:
    """Return why the judge's answer is hidden, empty if it is shown."""
    number = None if query.judge else waiting_round(trial)
    if number is None:
        return ""
    return (
        f"This trial waits for a label in review round {number}, so the judge's answer, the outcome and the "
        "composite are hidden. Add judge=show to see them."
    )


def _without_judge(document: dict[str, Any], why: str) -> dict[str, Any]:
    """Return a trial's document without what a judge decided, if there is a reason to hide it."""
    if not why:
        return document
    scores = [each for each in document["scores"] if each["layer"] not in JUDGED]
    decided: dict[str, Any] = {"outcome": None, "composite": None, "judgings": [], "warnings": []}
    hidden = {name: empty for name, empty in decided.items() if name in document}
    return {**document, **hidden, "scores": scores, "judge_hidden": why}


@router.get("/trials/{trial_id}/commands", auth=Bearer(), response=declare_answers(CommandsOut))
def list_commands(request: ApiRequest, trial_id: Path[Key]) -> dict[str, Any]:
    """List the commands of the tool under test, in order."""
    rows = CommandRecord.objects.filter(trial=find_trial(request, trial_id))
    return {"items": redact_json(list(rows.values(*CommandOut.model_fields)))}


@router.get("/trials/{trial_id}/transcript", auth=Bearer(), response=declare_answers(TranscriptOut))
def get_transcript(request: ApiRequest, trial_id: Path[Key], query: Query[Events]) -> Any:
    """Get a trial's transcript, redacted; page through many events with `start` and `limit`."""
    record = TranscriptRecord.objects.filter(trial=find_trial(request, trial_id)).first()
    if record is None:
        raise not_found("transcript of trial", trial_id)
    return redact_json(_transcript(record.unpack(), query))


def _transcript(transcript: Transcript, query: Events) -> dict[str, Any]:
    events = transcript.events[query.start : query.start + query.limit]
    return {
        "source": transcript.source,
        "total_events": len(transcript.events),
        "events": json_of(events),
        "text": transcript.text[:LONGEST_TEXT],
        "text_complete": len(transcript.text) <= LONGEST_TEXT,
        "answer": transcript.answer,
        "usage": json_of(transcript.usage),
        "problems": list(transcript.problems),
    }


@router.get("/trials/{trial_id}/artifacts", auth=Bearer(), response=declare_answers(ArtifactsOut))
def list_artifacts(request: ApiRequest, trial_id: Path[Key]) -> dict[str, Any]:
    """List a trial's stored files."""
    rows = Artifact.objects.filter(trial=find_trial(request, trial_id))
    return {"items": list(rows.values(*ArtifactOut.model_fields))}


@router.get(
    "/trials/{trial_id}/artifacts/{artifact}",
    auth=Bearer("read unredacted"),
    response={REFUSALS: ErrorOut},
    openapi_extra={
        "responses": {
            200: {
                "description": "The file",
                "content": {"application/octet-stream": {"schema": {"type": "string"}}},
            }
        }
    },
)
def download_artifact(request: ApiRequest, trial_id: Path[Key], artifact: Path[Text]) -> FileResponse:
    """Download a stored file, unredacted."""
    stored = Artifact.objects.filter(trial=find_trial(request, trial_id), name=artifact).first()
    if stored is None:
        raise not_found("artifact", artifact)
    try:
        content = open_kept(stored.sha256)
    except StoredFileUnavailable as error:
        raise ApiError(404, str(error), id=error.id) from error
    return FileResponse(
        content,
        as_attachment=True,
        filename=f"trial-{trial_id}-{stored.name}",
        content_type="application/octet-stream",
    )
