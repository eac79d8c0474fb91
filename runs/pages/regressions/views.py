"""Views of the regressions queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import csv_response, wants_csv
from evalhub.web.fragments import page_or_fragment
from runs.models.comparison import AlertState
from runs.pages.forms import AlertForm
from runs.pages.regressions.alerts import AlertCard, alert_card, alert_page
from runs.pages.regressions.tables import regression_table
from runs.warehouse.alert_filters import NOBODY, AlertListFilters, alert_counts, in_force
from runs.warehouse.no_match import no_match
from runs.warehouse.triage import triage

TITLES = {
    AlertState.UNTRIAGED: "Untriaged",
    AlertState.ACKNOWLEDGED: "Acknowledged",
    AlertState.INVESTIGATING: "Investigating",
    AlertState.FIXED: "Fixed",
    AlertState.WONT_FIX: "Won't fix",
    AlertState.INVALID: "Not a regression",
}


@require_safe
@project_page()
def regressions(request: ProjectRequest) -> HttpResponseBase:
    """List the matching alerts of one state, by default the untriaged ones."""
    project, filters = request.access.project, AlertListFilters.of(request.GET)
    requested = request.GET.get("state", "")
    state = requested if requested in AlertState.values else AlertState.UNTRIAGED.value
    if wants_csv(request):
        return csv_response(regression_table(project, state, filters))
    counts = alert_counts(project, filters)
    members = members_of(project)
    page, cards = alert_page(project, state, filters, request.GET.get("before", ""))
    chips = in_force(filters, state, counts)
    context = {
        "state": state,
        "tabs": [
            (each.value, title, counts.matching[each], filters.query(each.value))
            for each, title in TITLES.items()
        ],
        "cards": [(card, AlertForm(members, card.alert)) for card in cards],
        "page": page,
        "filters": filters,
        "in_force": chips,
        "no_match": no_match(
            "regression", [(each.name, each.value, each.left) for each in chips], older=not page.first
        ),
        "assignees": _assignees(members, filters.assignee),
        "found": counts.matching[state],
        "elsewhere": counts.matching.total() - counts.matching[state],
        "older": page.older(request.GET) if page.before else "",
        "may_triage": request.access.may("triage"),
        "total": counts.all.total(),
    }
    return page_or_fragment(
        request, "regressions/regressions.html", "regressions/_alerts_swapped.html", context
    )


def _assignees(members: Mapping[str, Any], selected: str) -> list[tuple[str, str]]:
    """Return the filter's choices, including the selected person even if not a member."""
    names = [*members, *({selected} - {"", NOBODY, *members})]
    return [("", "Anyone"), (NOBODY, "Nobody"), *((name, name) for name in names)]


def members_of(project: Project) -> dict[str, Any]:
    """Return a project's members by name. One query."""
    memberships = project.memberships.select_related("user").order_by("user__username")
    return {each.user.get_username(): each.user for each in memberships}


def _card(project: Project, pk: int) -> AlertCard:
    card = alert_card(project, pk)
    if card is None:
        raise Http404
    return card


@require_POST
@project_page("triage")
def alert_triage(request: ProjectRequest, pk: int) -> HttpResponse:
    """Save an alert's triage."""
    project = request.access.project
    card = _card(project, pk)
    members = members_of(project)
    form = AlertForm(members, card.alert, request.POST)
    changes = form.changes() if form.is_valid() else {}
    if changes:
        triage(card.alert, by=request.user, **changes)
    if request.htmx:
        # Render the card with the stored alert.
        shown = AlertForm(members, card.alert) if form.is_valid() else form
        context = {"card": card, "form": shown, "saved": bool(changes), "swapped": True, "may_triage": True}
        return render(request, "regressions/_alert.html", context, status=200 if form.is_valid() else 422)
    if form.is_valid():
        messages.success(request, f"Alert {pk} is {card.alert.get_state_display().lower()}.")
    for errors in form.errors.values():
        for error in errors:
            messages.error(request, str(error))
    return redirect(f"{reverse('regressions', args=[project.slug])}?state={card.alert.state}#alert-{pk}")
