"""What a launch may still spend, and what a project has spent in a calendar month, in UTC."""

from __future__ import annotations

from django.db.models import Sum
from django.utils import timezone

from evalhub.lib.numbers import format_money
from evalhub.teams.models import Project
from runs.models import Run
from runs.models.run import OPEN
from scenarios.models import SESSIONS


def is_budget_spent(launch: int, max_usd: float) -> bool:
    """Return whether the launch's runs have cost its budget, as far as they report costs. One query."""
    spent = Run.objects.filter(launch=launch).aggregate(spent=Sum("cost_usd"))["spent"]
    return spent is not None and spent >= max_usd


def budget_reason(run: Run) -> str:
    """Return why the run's remaining trials are cancelled."""
    return f"The budget of {format_money(run.max_usd)} was reached."


def why_spent(run: Run) -> str:
    """Return that the budget of a run's launch or of its project's month is spent; empty if neither is."""
    if run.max_usd is not None and is_budget_spent(run.launch_id, run.max_usd):
        return budget_reason(run)
    return month_spent_sentence(run.project)


def siblings_to_stop(run_id: int) -> list[int]:
    """Return the other open runs of the run's launch if its budget is spent. One query without a budget."""
    launch, max_usd = Run.objects.values_list("launch", "max_usd").get(pk=run_id)
    if max_usd is None or not is_budget_spent(launch, max_usd):
        return []
    others = Run.objects.filter(launch=launch, state__in=OPEN, open__gt=0).exclude(pk=run_id)
    return list(others.order_by("pk").values_list("pk", flat=True))


def spent_this_month(project: int) -> float:
    """Return what the runs requested this month have cost so far; those that report no cost are left out. One query.

    People's sessions are not paid for by the project's runs.
    """
    began = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    runs = Run.objects.filter(project=project, created__gte=began)
    runs = runs.exclude(suite__format=SESSIONS)
    return float(runs.aggregate(spent=Sum("cost_usd"))["spent"] or 0.0)


def month_spent_sentence(project: Project) -> str:
    """Return that the project's budget of this month is spent; empty if it is not. One query with a budget."""
    if project.month_usd is None or spent_this_month(project.pk) < project.month_usd:
        return ""
    return f"The project's budget of {format_money(project.month_usd)} for {timezone.now():%B %Y} is spent."
