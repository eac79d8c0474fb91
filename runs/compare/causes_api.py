"""What is likely to blame for a run's regression, and runs that set causes apart."""

from __future__ import annotations

from typing import Any

from ninja import Path, Router, Schema, Status

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers
from evalhub.web.rest.request_body import Key
from runs.compare.causes import causes_of
from runs.launch.separation import request_separation, separation_of
from runs.models import Run
from runs.models.run import Trigger
from runs.results.lookup import find_run

router = Router(tags=["runs"])


class CauseOut(Schema):
    factor: str
    """tool, guidance, model, scenarios, judge, target, evalhub or sandbox."""
    regressions: int
    """Earlier regressions of the project in which it changed too."""
    of: int
    """Earlier regressions, at most 50."""


class ArmOut(Schema):
    run: int
    factor: str | None
    """The factor that is as in the baseline; null for the control, a fresh run of the same configuration."""
    state: str
    verdict: str | None
    """The control is compared with the baseline, the others with the control."""
    verdict_against_baseline: str | None
    """Where all others still regress against it, a factor that can't be set back is the cause."""


class CausesOut(Schema):
    run: int
    baseline: int | None
    changed: list[CauseOut]
    can_set_back: list[str]
    """The factors that fresh runs can take from the baseline."""
    by_hand: dict[str, str]
    """The other factors: why no fresh run sets them back, and what you can do instead."""
    fresh: list[ArmOut]
    conclusion: str
    """The cause that the fresh runs indicate; empty until they have finished."""


@router.get("/runs/{run_id}/causes", auth=Bearer(), response=declare_answers(CausesOut))
def get_causes(request: ApiRequest, run_id: Path[Key]) -> dict[str, Any]:
    """Get what changed since a run's baseline, and what fresh runs show."""
    return _causes_json(find_run(request, run_id))


@router.post("/runs/{run_id}/causes", auth=Bearer("run"), response=declare_answers(CausesOut, status=202))
def separate(request: ApiRequest, run_id: Path[Key]) -> Status[dict[str, Any]]:
    """Queue fresh runs that set the causes of a regression apart, one factor at a time."""
    run = find_run(request, run_id)
    request_separation(run.pk, by=request.access.user, trigger=Trigger.API)
    return Status(202, _causes_json(run))


def _causes_json(run: Run) -> dict[str, Any]:
    separation = separation_of(run)
    changed = causes_of(run, separation.baseline) if separation else []
    return {
        "run": run.pk,
        "baseline": run.baseline_id,
        "changed": [
            {"factor": cause.factor, "regressions": cause.regressions, "of": cause.of} for cause in changed
        ],
        "can_set_back": separation.factors if separation else [],
        "by_hand": dict(separation.by_hand) if separation else {},
        "fresh": [
            {
                "run": arm.run.pk,
                "factor": arm.factor or None,
                "state": arm.run.state,
                "verdict": arm.run.verdict or None,
                "verdict_against_baseline": separation.against_baseline.get(arm.factor) or None,
            }
            for arm in separation.arms
        ]
        if separation
        else [],
        "conclusion": separation.conclusion if separation else "",
    }
