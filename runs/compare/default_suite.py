"""Choose a page's default suite."""

from __future__ import annotations

from django.db.models import QuerySet

from evalhub.teams.models import Project
from runs.models import Run, RunMeasure

MOST_RUNS = 100
"""Newest runs searched for a judge."""


def newest_suite(project: Project) -> int | None:
    """Return the suite of a project's newest run, None without runs. One query."""
    return next((suite for _, suite in _newest(project.pk)[:1]), None)


def newest_judged_suite(project: Project) -> int | None:
    """Return the suite of the newest run with a judge's score, else that of the newest run. Two queries."""
    suites = dict(_newest(project.pk))
    return suites.get(max(_find_judged(tuple(suites)), default=0)) or next(iter(suites.values()), None)


def _newest(project: int) -> QuerySet[Run, tuple[int, int]]:
    return Run.objects.filter(project=project).order_by("-pk").values_list("pk", "suite_id")[:MOST_RUNS]


def _find_judged(runs: tuple[int, ...]) -> QuerySet[RunMeasure, int]:
    scores = RunMeasure.objects.filter(run__in=runs, scenario=None, measure__layer="judge")
    return scores.values_list("run_id", flat=True)
