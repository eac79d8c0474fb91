"""Find trials by their texts and by the names of suite, target and the like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from evalhub.teams.models import Project
from evalhub.web.paging import key_of
from runs.models import Target
from runs.results.address_filters import AddressFilters
from runs.results.search.trial_search import COLUMNS, FoundTrial, SearchFilters, SearchQuery, search_trials
from scenarios.models import Suite


@dataclass(frozen=True)
class TrialSearch(AddressFilters):
    """A search by the names of what it is limited to; an empty text isn't a filter."""

    q: str = ""
    place: str = ""
    """A column of the index; empty for all of them."""
    suite: str = ""
    target: str = ""
    outcome: str = ""
    tool_version: str = ""
    guidance: str = ""
    by: str = ""
    since: str = ""
    until: str = ""

    @property
    def of_trials(self) -> bool:
        """Whether a filter is set that only trials have."""
        return replace(self, q="") != TrialSearch()


def find_trials(project: Project, filters: TrialSearch) -> list[FoundTrial]:
    """Return the trials that match the text and every filter."""
    search_filters = _search_filters(project, filters)
    return search_trials(project, SearchQuery.parse(filters.q), search_filters) if search_filters else []


def _search_filters(project: Project, filters: TrialSearch) -> SearchFilters | None:
    """Return the filters with the keys of what they name; None if something does not exist."""
    keys: dict[str, Any] = {}
    for name, rows in (
        ("suite", Suite.objects.filter(project=project, slug=filters.suite)),
        ("target", Target.objects.filter(project=project, name=filters.target)),
        ("by", project.memberships.filter(user__username=filters.by)),
    ):
        if getattr(filters, name):
            field = "user_id" if name == "by" else "pk"
            keys[f"{name}_id"] = rows.values_list(field, flat=True).first()
    if filters.guidance:
        keys["guidance_id"] = key_of(filters.guidance)
    if None in keys.values():
        return None
    until = _day(filters.until)
    return SearchFilters(
        column=filters.place if filters.place in COLUMNS else "",
        outcome=filters.outcome,
        tool_version=filters.tool_version,
        since=_day(filters.since),
        # The whole day counts.
        until=until + timedelta(days=1) if until and until.year < date.max.year else until,
        **keys,
    )


def _day(text: str) -> datetime | None:
    """Return the start of a day in UTC; None if the text names none."""
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        return None
