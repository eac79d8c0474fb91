"""Find one run: for its pages, and for commands.

Look up rows of the token's project, never of another.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists, OuterRef
from django.http import Http404

from evalhub.teams.access import ProjectRequest
from evalhub.teams.bearer import ApiRequest
from evalhub.web.rest.errors import not_found
from runs.models import Baseline, DiagnosisReview, Run, ScenarioProof, Trial
from runs.models.proof import Seal
from runs.models.run import STALE
from runs.results.run_list import HEAVY, runs_of
from runs.results.run_rows import COST_IS_PARTIAL
from scenarios.commands import Refused
from scenarios.models import Suite


def find_suite(request: ApiRequest, slug: str) -> Suite:
    """Return the project's suite. Raises `ApiError` 404."""
    suite = Suite.objects.filter(project=request.access.project, slug=slug).first()
    if suite is None:
        raise not_found("suite", slug)
    return suite


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


RELATED = ("suite", "target", "guidance", "by", "launch", "suite_version", "baseline__guidance")
_OF_BASELINE = ("fingerprint", "options", "counting", "guidance", "suite_version", "passed", "failed")
"""Relations needed to compare a run with its baseline."""
UNSHOWN = (
    *(column for column in HEAVY if "__" in column),
    "baseline__guidance__files",
    *(
        f"baseline__{field.name}"
        for field in Run._meta.concrete_fields
        if field.name not in _OF_BASELINE and not field.primary_key
    ),
)
"""Columns that no page of a run shows."""


def find_shown_run(request: ProjectRequest, pk: int) -> Run:
    """Return the project's run with `is_stale`, `is_pinned` (as a baseline), `cost_is_partial`, `has_reviews` and more.

    `has_reviews` says whether findings of the project were reviewed, `has_no_agent_seals` whether scenarios of the
    run's suite version passed without an agent. One query. Raises `Http404`.
    """
    project = request.access.project
    no_agent = ScenarioProof.objects.filter(
        proof__suite_version=OuterRef("suite_version"), seal=Seal.NO_AGENT
    )
    runs = Run.objects.filter(project=project, pk=pk).annotate(
        is_stale=STALE,
        is_pinned=Exists(Baseline.objects.filter(run=OuterRef("pk"))),
        has_reviews=Exists(DiagnosisReview.objects.filter(run__project=project)),
        has_no_agent_seals=Exists(no_agent),
        cost_is_partial=COST_IS_PARTIAL,
    )
    run = runs.select_related(*RELATED).defer(*UNSHOWN).first()
    if run is None:
        raise Http404
    # Both are the same project: avoid loading it twice more.
    run.project = run.suite.project = project
    return run


def find_run_or_refuse(number: int, *related: str) -> Run:
    """Return the run with this number and its related rows. One query. Raises `Refused`."""
    run = Run.objects.select_related(*related).filter(pk=number).first()
    if run is None:
        raise Refused(f"There is no run {number}. The runs page lists all runs.", id="run/unknown")
    return run
