"""Compare stored runs with their baselines again."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from evalhub.teams.models import Project
from runs.models import Change, Run
from runs.models.run import RunState
from runs.warehouse.comparison import compare_with_baseline


def compare_again(project: Project) -> int:
    """Compare every finished run of a project, oldest first; return how many. One transaction for each run."""
    return _compare(Run.objects.filter(project=project))


def compare_old_runs() -> int:
    """Compare the runs that an older release compared by flips alone; return how many."""
    old = Change.objects.filter(scenario=None, detail__measure__isnull=True).values("run")
    return _compare(Run.objects.filter(pk__in=old))


def _compare(runs: QuerySet[Run]) -> int:
    keys = list(runs.filter(state=RunState.FINISHED).order_by("pk").values_list("pk", flat=True))
    for key in keys:
        with transaction.atomic():
            compare_with_baseline(Run.objects.select_related("project").get(pk=key))
    return len(keys)
