"""Replay a trial's calls as in a terminal, and download the recording."""

from __future__ import annotations

from csp.constants import HEADER
from csp.utils import build_policy
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evaluators.transcripts.asciicast import Step, cast_lines, steps
from runs.models import Trial
from runs.results.trial_page.trial_page import find_trial

WASM = {"script-src": ["'wasm-unsafe-eval'"]}
"""The player's terminal is WebAssembly; no other page may compile any."""


def _replayed(request: ProjectRequest, pk: int) -> tuple[Trial, list[Step]]:
    trial = find_trial(request.access.project, pk)
    record = getattr(trial, "transcript", None)
    if trial is None or record is None:
        raise Http404
    return trial, steps(record.unpack())


@require_safe
@project_page()
def trial_replay(request: ProjectRequest, pk: int) -> HttpResponseBase:
    """Play a trial's calls, one after the other."""
    trial, found = _replayed(request, pk)
    failed = next((place for place, step in enumerate(found) if step.failed), None)
    response = render(
        request, "results/trial/replay.html", {"trial": trial, "steps": found, "first_failure": failed}
    )
    response.headers[HEADER] = build_policy(update=WASM)
    return response


@require_safe
@project_page()
def trial_cast(request: ProjectRequest, pk: int) -> HttpResponse:
    """Send the recording as asciicast v2."""
    trial, found = _replayed(request, pk)
    title = f"{trial.scenario.key}, trial {trial.pk}"
    began = int(trial.started.timestamp()) if trial.started else None
    response = HttpResponse("".join(cast_lines(found, title, began)), content_type="application/x-asciicast")
    response["Content-Disposition"] = f'attachment; filename="trial-{trial.pk}.cast"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
