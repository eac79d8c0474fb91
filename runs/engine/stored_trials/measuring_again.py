"""Add measures of a later release to stored runs: false done, and how far guidance got."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from evalhub.teams.models import Project
from runs.engine.assess import exposure_detail
from runs.engine.context import load_run
from runs.engine.task import lays_files, needs_workspace
from runs.errors import ProviderError
from runs.models import Run, RunMeasure, Trial
from runs.models.trial import TrialState
from runs.results.rollups import COMPLETED, FALSE_DONE, add_measure

BATCH = 50


@dataclass(frozen=True)
class ExposedAgain:
    """How many trials were measured, and the runs whose target can't be read any more, with the reason."""

    trials: int
    skipped: dict[int, str]


def lacking_exposure(project: Project | None = None) -> QuerySet[Trial]:
    """Return the finished trials of runs with guidance whose exposure was never computed."""
    trials = Trial.objects.filter(run__guidance__isnull=False, state=TrialState.FINISHED)
    trials = trials.filter(transcript__isnull=False, detail__exposure__isnull=True)
    return trials.filter(run__project=project) if project else trials


def measure_exposure(project: Project | None = None) -> ExposedAgain:
    """Compute the exposure that trials lack from their stored transcripts.

    Those trials are older than copies under the agent's own name, so none was laid. A trial whose scenario has none of
    the run's documents gets an empty one, so that it is not read again.
    """
    done, skipped = 0, {}
    for run in lacking_exposure(project).order_by("run_id").values_list("run_id", flat=True).distinct():
        try:
            context = load_run(run)
        except ProviderError as error:
            skipped[run] = str(error)
            continue
        rows = lacking_exposure().filter(run=run).select_related("transcript", "scenario_version")
        for trial in rows.order_by("pk").iterator(chunk_size=BATCH):
            spec = trial.scenario_version.spec
            folder = lays_files(context, spec) or bool(spec.post) or needs_workspace(spec.criteria)
            found = exposure_detail(context, spec, trial.transcript.unpack(), laid=(), in_folder=folder)
            trial.detail = {"exposure": {}, **trial.detail, **found}
            trial.save(update_fields=["detail"])
            done += 1
        Run.objects.filter(pk=run).update(measured=timezone.now())
    return ExposedAgain(done, skipped)


def measure_again(project: Project | None = None) -> int:
    """Add false done to the closed runs that lack it; return how many got it. One transaction for each run."""
    own = RunMeasure.objects.filter(run=OuterRef("pk"), scenario=None)
    layer, name = FALSE_DONE
    lacking = Run.objects.filter(
        Exists(own.filter(measure__layer="gates")),
        Exists(own.filter(measure__layer=COMPLETED[0], measure__name=COMPLETED[1])),
        ~Exists(own.filter(measure__layer=layer, measure__name=name)),
    )
    runs = list(lacking.filter(project=project) if project else lacking)
    done = 0
    for run in runs:
        with transaction.atomic():
            done += add_measure(run, FALSE_DONE)
    return done
