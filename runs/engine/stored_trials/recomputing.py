"""Compute stored trials again by the rules of this release, run by run, so that an interruption loses little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from django.db.models import Q, QuerySet

from evalhub.teams.models import Project
from runs.compare.comparison import compare_with_baseline
from runs.compare.line import ALONE
from runs.models import Run, Trial
from runs.models.run import RunState

BATCH = 50
"""Trials of one transaction."""


class RunRecomputed(NamedTuple):
    """What was computed of one run."""

    trials: int = 0
    kept: int = 0
    """Trials without anything to compute from."""
    compared: int = 0


@dataclass
class Recomputed:
    """What was computed again."""

    runs: int = 0
    trials: int = 0
    kept: int = 0
    """Trials without anything to compute from; they keep their figures and are not compared with new ones."""
    compared: int = 0
    """Runs that were compared with their baseline again."""
    behind: int = 0
    """Runs that were to be computed again."""


def closed_runs_behind(field: str, version: int, project: Project | None = None) -> QuerySet[Run]:
    """Return the closed runs with an older version in `field`, oldest first."""
    runs = Run.objects.filter(**{f"{field}__lt": version}, state__in=(RunState.FINISHED, RunState.CANCELLED))
    return (runs.filter(project=project) if project else runs).order_by("pk")


def recompute_runs(
    keys: Sequence[int], recompute: Callable[[Run], RunRecomputed], progress: Callable[[int, int], None]
) -> Recomputed:
    """Compute these runs again; `progress` gets the runs done and their number."""
    done = Recomputed(behind=len(keys))
    for at, key in enumerate(keys, 1):
        run = Run.objects.select_related("project", "target", "target_version", "suite").get(pk=key)
        counts = recompute(run)
        done.trials += counts.trials
        done.compared += counts.compared
        done.kept += counts.kept
        done.runs += bool(counts.trials)
        progress(at, len(keys))
    return done


def batches(keys: QuerySet[Trial, int], size: int) -> Iterator[list[int]]:
    """Yield the keys in lists of at most `size`."""
    every = iter(list(keys))
    while batch := list(islice(every, size)):
        yield batch


def compare_recomputed(run: Run, field: str, version: int) -> int:
    """Compare a run, and those that have it alone as baseline, as soon as both have the version; return how many.

    Requires a transaction: the one that gives the run the version, so that an interruption leaves none out.
    """
    pairs = Run.objects.filter(
        Q(pk=run.pk) | Q(ALONE, baseline=run.pk),
        state=RunState.FINISHED,
        **{f"{field}__gte": version, f"baseline__{field}__gte": version},
    )
    compared = list(pairs.select_related("project").order_by("pk"))
    for later_run in compared:
        compare_with_baseline(later_run)
    return len(compared)
