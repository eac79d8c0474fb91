"""Choose a page's suite: the requested one, else the one that ran last."""

from __future__ import annotations

from django.db.models import QuerySet

from evalhub.teams.models import Project
from runs.models import Run, RunMeasure
from scenarios.models import Suite

MOST_RUNS = 100
"""Newest runs searched for a judge."""


def choose_suite(
    project: Project, slug: str, *, prefers_judged: bool = False
) -> tuple[list[Suite], Suite | None]:
    """Return the project's suites and the requested one; without it that of the newest run, else the first.

    `prefers_judged` puts the newest run with a judge's score before the newest. One query, one or two more without
    the requested suite.
    """
    suites = list(Suite.objects.filter(project=project))
    requested = next((suite for suite in suites if suite.slug == slug), None)
    if requested or not suites:
        return suites, requested
    newest = (
        _newest_judged_suite(project)
        if prefers_judged
        else next((suite for _, suite in _newest(project.pk)[:1]), None)
    )
    return suites, next((suite for suite in suites if suite.pk == newest), suites[0])


def _newest_judged_suite(project: Project) -> int | None:
    """Return the suite of the newest run with a judge's score, else that of the newest run. Two queries."""
    suites = dict(_newest(project.pk))
    judged = RunMeasure.objects.filter(run__in=suites, scenario=None, measure__layer="judge")
    newest = max(judged.values_list("run_id", flat=True), default=0)
    return suites.get(newest) or next(iter(suites.values()), None)


def _newest(project: int) -> QuerySet[Run, tuple[int, int]]:
    return Run.objects.filter(project=project).order_by("-pk").values_list("pk", "suite_id")[:MOST_RUNS]
