"""The budget of a launch: once its runs cost this much, no further trial starts."""

from __future__ import annotations

from django.db.models import Sum

from evalhub.lib.numbers import money
from runs.models import Run
from runs.models.run import OPEN


def is_spent(launch: int, max_usd: float) -> bool:
    """Return whether the launch's runs have cost its budget, as far as they report costs. One query."""
    spent = Run.objects.filter(launch=launch).aggregate(spent=Sum("cost_usd"))["spent"]
    return spent is not None and spent >= max_usd


def reason(run: Run) -> str:
    """Return why the run's remaining trials are cancelled."""
    return f"The budget of {money(run.max_usd)} was reached."


def siblings_to_stop(run_id: int) -> list[int]:
    """Return the other open runs of the run's launch if its budget is spent. One query without a budget."""
    launch, max_usd = Run.objects.values_list("launch", "max_usd").get(pk=run_id)
    if max_usd is None or not is_spent(launch, max_usd):
        return []
    others = Run.objects.filter(launch=launch, state__in=OPEN, open__gt=0).exclude(pk=run_id)
    return list(others.order_by("pk").values_list("pk", flat=True))
