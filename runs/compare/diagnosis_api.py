"""The diagnosis of a run, and whether its findings are right."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from ninja import Path, Router, Schema
from pydantic import Field

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers
from evalhub.web.rest.request_body import Key, Name, RequestBody
from evaluators.statistics.run_diagnosis import DiagnosisThresholds
from runs.models import Run
from runs.results.lookup import find_run
from runs.results.run_trials import trials_of
from runs.review.diagnosis_reviews import NO_REVIEW, Precision, precisions, review_finding

router = Router(tags=["runs"])


class CommandShareOut(Schema):
    name: str
    hits: int
    """Calls that show the pattern."""
    calls: int
    trials: int
    scenarios: int


class PrecisionOut(Schema):
    """How often people found the pattern right, over the project's runs."""

    right: int
    n: int
    low: float | None
    """The lower end of the 95 % interval (Wilson); null without reviews."""
    high: float | None
    own: bool | None
    """Whether it is right in this run; null if nobody has said so."""


class FindingOut(Schema):
    pattern: str
    sentence: str
    evidence: list[str]
    trials: list[int]
    """Numbers of the trials that show it."""
    of_trials: int
    """Trials with commands of the tool; 0 if unknown, in runs of older releases."""
    scenarios: list[str]
    of_scenarios: int
    commands: list[CommandShareOut]
    precision: PrecisionOut


class DiagnosisOut(Schema):
    run: int
    thresholds: dict[str, float]
    history: int
    """Earlier runs that set thresholds; 0 if none did."""
    edited: list[str]
    """Thresholds that the project sets."""
    findings: list[FindingOut]
    """Those of most trials first."""


class FindingReviewIn(RequestBody):
    """Whether a finding is right; null removes the review."""

    right: Annotated[bool | None, Field(...)]


def _json(run: Run) -> dict[str, Any]:
    digest, reviewed = trials_of(run).digest, precisions(run)
    cut_offs = digest.cut_offs or DiagnosisThresholds()
    return {
        "run": run.pk,
        "thresholds": msgspec.to_builtins(cut_offs.limits),
        "history": cut_offs.history,
        "edited": cut_offs.edited,
        "findings": [
            {
                **msgspec.structs.asdict(finding),
                "commands": [msgspec.structs.asdict(command) for command in finding.commands],
                "precision": _precision(reviewed.get(finding.pattern, NO_REVIEW)),
            }
            for finding in digest.diagnosis
        ],
    }


def _precision(precision: Precision) -> dict[str, Any]:
    low, high = (precision.interval.lower, precision.interval.upper) if precision.n else (None, None)
    return {"right": precision.right, "n": precision.n, "low": low, "high": high, "own": precision.own}


@router.get("/runs/{run_id}/diagnosis", auth=Bearer(), response=declare_answers(DiagnosisOut))
def get_diagnosis(request: ApiRequest, run_id: Path[Key]) -> dict[str, Any]:
    """Get what a run's commands say of the tool and its docs: patterns with trials, scenarios and commands."""
    return _json(find_run(request, run_id))


@router.put(
    "/runs/{run_id}/diagnosis/{pattern}", auth=Bearer("review"), response=declare_answers(DiagnosisOut)
)
def put_diagnosis_review(
    request: ApiRequest, run_id: Path[Key], pattern: Path[Name], body: FindingReviewIn
) -> dict[str, Any]:
    """Store whether a finding is right; it counts in its rule's precision."""
    run = find_run(request, run_id)
    review_finding(run, pattern, is_right=body.right, by=request.access.user)
    return _json(run)
