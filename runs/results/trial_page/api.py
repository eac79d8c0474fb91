"""Trials with their transcripts and artifacts."""

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
from evalhub.web.rest.pages import Cursor, ListOut, PageOut, page_of
from evalhub.web.rest.request_body import Key
from evaluators.model import Transcript
from evaluators.redaction import redact_json
from runs.exchange.exports.document import trial_facts, trial_json
from runs.models import Artifact, TranscriptRecord, Trial
from runs.models.trial import json_of
from runs.results.files.artifacts import StoredFileUnavailable, open_kept
from runs.results.lookup import find_run, find_trial
from runs.results.schemas import AttemptOut, CommandOut, TrialOut, TrialRowOut, UsageOut

router = Router(tags=["trials"])


class TrialFilters(Cursor):
    """Filters of a run's trials."""

    outcome: Literal["", "pass", "fail", "error"] = ""
    scenario: Text = ""


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
def get_trial(request: ApiRequest, trial_id: Path[Key]) -> dict[str, Any]:
    """Get one trial with its commands and the scores of every layer."""
    trial = find_trial(request, trial_id)
    names = trial.artifacts.values_list("name", flat=True)
    return {
        **trial_json(trial, trial.judgings.all(), names),
        "attempts": redact_json(list(trial.attempts.values(*AttemptOut.model_fields))),
        "commands": redact_json(list(trial.commands.values(*CommandOut.model_fields))),
    }


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


@router.get("/trials/{trial_id}/artifacts", auth=Bearer(), response=declare_answers(ListOut[ArtifactOut]))
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
