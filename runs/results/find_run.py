"""Find one run: for its pages, and for commands."""

from __future__ import annotations

from django.db.models import Exists, OuterRef
from django.http import Http404

from evalhub.teams.access import ProjectRequest
from runs.models import Baseline, DiagnosisReview, Run, ScenarioProof
from runs.models.proof import Seal
from runs.models.run import STALE
from runs.results.run_list import HEAVY
from runs.results.run_rows import COST_IS_PARTIAL
from scenarios.commands import Refused

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
