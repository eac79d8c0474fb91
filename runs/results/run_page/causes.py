"""Show what is likely to blame for a run's regression, and set causes apart."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evalhub.teams.pages import ProjectRequest, project_page
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.causes import Cause, causes_of
from runs.errors import RequestError
from runs.launch.separation import Separation, request_separation, separation_of
from runs.models import Run
from runs.models.run import Trigger
from runs.results.find_run import find_shown_run


@dataclass(frozen=True)
class ShownCauses:
    """The causes of a regression."""

    causes: list[Cause]
    separation: Separation


def shown_causes(run: Run) -> ShownCauses | None:
    """Return what changed before a regression; None for other verdicts. Two queries, else none."""
    if run.verdict != ChangeVerdict.REGRESSED:
        return None
    separation = separation_of(run)
    return ShownCauses(causes_of(run, separation.baseline), separation) if separation else None


@require_POST
@project_page("run")
def run_separate(request: ProjectRequest, pk: int) -> HttpResponse:
    """Queue the runs that set a regression's causes apart."""
    run = find_shown_run(request, pk)
    try:
        runs = request_separation(run.pk, by=request.user, trigger=Trigger.WEB)
        messages.success(request, f"Queued {len(runs)} runs. This page says which cause they point at.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect(f"{run.get_absolute_url()}#causes")
