"""Filter the regressions queue by its query string."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, Exists, F, OuterRef, Q

from evalhub.teams.models import Project
from runs.models import Alert, Change
from runs.results.address_filters import AddressFilters
from runs.results.run_filters import WORDS, InForce

NOBODY = "(nobody)"
"""Means no assignee; user names have no brackets."""


@dataclass(frozen=True)
class AlertListFilters(AddressFilters):
    """Filters besides the state; an empty text isn't a filter."""

    q: str = ""
    """Part of a suite's or target's name, or of a regressed scenario's key."""
    assignee: str = ""
    """A user's name, or `NOBODY`."""
    evidence: str = ""
    """A value of `Evidence`."""

    def query(self, state: str) -> str:
        """Return the query string of a state with these filters."""
        return urlencode([("state", state), *self.in_force])

    def condition(self) -> Q:
        """Return the filters as one condition on alerts."""
        condition = Q(evidence=self.evidence) if self.evidence else Q()
        if self.assignee:
            condition &= Q(assignee=None) if self.assignee == NOBODY else Q(assignee__username=self.assignee)
        if self.q:
            # Search regressions per alert: there are far fewer alerts than changes.
            regressed = Change.objects.filter(run=OuterRef("run"), after__lt=F("before"))
            condition &= (
                Q(run__suite__name__icontains=self.q)
                | Q(run__target__name__icontains=self.q)
                | Q(Exists(regressed.filter(scenario__key__icontains=self.q)))
            )
        return condition


@dataclass(frozen=True)
class AlertCounts:
    """How many alerts of each state there are."""

    all: Counter[str]
    matching: Counter[str]
    """Alerts that match the filters."""
    left: dict[str, Counter[str]]
    """Alerts that match without one of the filters, by its name."""


def alert_counts(project: Project, filters: AlertListFilters) -> AlertCounts:
    """Return how many alerts each state has, and how many match. One query."""
    variants = {"matching": filters} | {
        f"without_{name}": filters.without(name) for name, _ in filters.in_force
    }
    counts = {name: Count("pk", filter=Q(pk__gt=0) & each.condition()) for name, each in variants.items()}
    alerts = Alert.objects.filter(project=project).order_by().values("state")
    rows = list(alerts.annotate(n=Count("pk"), **counts))
    by_name = {name: Counter({row["state"]: row[name] for row in rows}) for name in ("n", *counts)}
    left = {name: by_name[f"without_{name}"] for name, _ in filters.in_force}
    return AlertCounts(by_name["n"], by_name["matching"], left)


def active_alert_filters(filters: AlertListFilters, state: str, counts: AlertCounts) -> list[InForce]:
    """Return the active filters with their labels and the number of alerts without each."""
    return [
        InForce(
            WORDS.get(name, name),
            "nobody" if (name, value) == ("assignee", NOBODY) else value.replace("_", " "),
            filters.without(name).query(state),
            counts.left[name][state],
        )
        for name, value in filters.in_force
    ]
