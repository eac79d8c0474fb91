"""Look up rows of the token's project, never of another."""

from __future__ import annotations

from collections.abc import Sequence

from evalhub.teams.bearer import ApiRequest
from evalhub.web.rest.errors import not_found
from runs.models import Run, Trial
from runs.results.run_list import runs_of


def find_run(request: ApiRequest, run_id: int) -> Run:
    """Return the project's run with all columns. Raises `ApiError` 404."""
    run = runs_of(request.access.project).defer(None).filter(pk=run_id).first()
    if run is None:
        raise not_found("run", run_id)
    return run


def find_runs(request: ApiRequest, run_ids: Sequence[int]) -> list[Run]:
    """Return the project's runs in the order of `run_ids`. Raises `ApiError` 404."""
    runs = {run.pk: run for run in runs_of(request.access.project).filter(pk__in=run_ids)}
    if missing := [run_id for run_id in run_ids if run_id not in runs]:
        raise not_found("run", missing[0])
    return [runs[run_id] for run_id in run_ids]


def find_trial(request: ApiRequest, trial_id: int) -> Trial:
    """Return the project's trial. Raises `ApiError` 404."""
    trials = Trial.objects.select_related("scenario").filter(run__project=request.access.project)
    trial = trials.filter(pk=trial_id).first()
    if trial is None:
        raise not_found("trial", trial_id)
    return trial
