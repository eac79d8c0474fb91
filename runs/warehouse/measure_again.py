"""Add measures of a later release to runs that closed before it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef

from evalhub.teams.models import Project
from runs.models import Run, RunMeasure
from runs.warehouse.rollups import COMPLETED, FALSE_DONE, add_measure


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
