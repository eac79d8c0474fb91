"""Views of the regressions queue, and of an alert's confirmation."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalhub.lib.numbers import counted
from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import STOP_POLLING, page_or_fragment
from evalhub.web.paging import key_of
from evalhub.web.posted_query import posted_query
from runs.alerts.alert_filters import (
    NOBODY,
    AlertCounts,
    AlertListFilters,
    active_alert_filters,
    alert_counts,
)
from runs.alerts.alert_page.alerts import AlertCard, alert_card, alert_page
from runs.alerts.alert_page.buttons import OfferedButtons
from runs.alerts.alert_page.forms import TITLES, AlertForm, BulkForm
from runs.alerts.alert_page.markdown import alert_as_markdown
from runs.alerts.triage import revert_guidance, triage, triage_all
from runs.compare.intended_changes import guidance_words
from runs.errors import RequestError, Unconfirmable, Unrevertable
from runs.launch.confirmation import plan_confirmation, start_confirmation
from runs.models import Alert, Run
from runs.models.comparison import AlertState, Evidence
from runs.results.address_filters import no_match

RIGHTS = ("triage", "run", "upload")


@require_safe
@project_page()
def regressions(request: ProjectRequest) -> HttpResponseBase:
    """List the matching alerts of one state, by default the untriaged ones."""
    project, filters = request.access.project, AlertListFilters.of(request.GET)
    state = _state(request.GET)
    counts = alert_counts(project, filters)
    members = members_of(project)
    page, cards = alert_page(project, state, filters, request.GET.get("before", ""))
    # Only one card is drawn with its details; the others load theirs.
    opened = key_of(request.GET.get("open", ""))
    chips = active_alert_filters(filters, state, counts)
    names = [*members, *({filters.assignee} - {"", NOBODY, *members})]
    context = {
        **_tabs(project, request.GET, counts),
        "cards": [
            (card, AlertForm(members, card.alert) if card.alert.pk == opened else None) for card in cards
        ],
        "page": page,
        "filters": filters,
        "in_force": chips,
        "no_match": no_match(
            "regression", [(each.name, each.value, each.left) for each in chips], older=not page.first
        ),
        "assignees": [("", "Anyone"), (NOBODY, "Nobody"), *((name, name) for name in names)],
        "found": counts.matching[state],
        "elsewhere": counts.matching.total() - counts.matching[state],
        "older": page.older(request.GET) if page.before else "",
        **_rights(request),
        "bulk": BulkForm(members),
        "evidences": [(each.value, each.label) for each in Evidence],
        "query": request.GET.urlencode(),
        "total": counts.all.total(),
    }
    return page_or_fragment(
        request, "alerts/regressions/regressions.html", "alerts/regressions/_alerts_swapped.html", context
    )


def _state(query: QueryDict) -> str:
    requested = query.get("state", "")
    return requested if requested in AlertState.values else AlertState.UNTRIAGED.value


def _tabs(project: Project, query: QueryDict, counts: AlertCounts | None = None) -> dict[str, Any]:
    """Return the tabs with their numbers of matching alerts, and the one that is shown."""
    filters = AlertListFilters.of(query)
    counts = counts or alert_counts(project, filters)
    tabs = [(value, title, counts.matching[value], filters.query(value)) for value, title in TITLES.items()]
    return {"tabs": tabs, "state": _state(query)}


def _rights(request: ProjectRequest) -> dict[str, Any]:
    rights = [action for action in RIGHTS if request.access.may(action)]
    return {"may_triage": "triage" in rights, "offered": OfferedButtons(rights)}


def members_of(project: Project) -> dict[str, Any]:
    """Return a project's members by name. One query."""
    memberships = project.memberships.select_related("user").order_by("user__username")
    return {each.user.get_username(): each.user for each in memberships}


def find_card(project: Project, pk: int) -> AlertCard:
    """Return an alert of the project. Raises `Http404`."""
    card = alert_card(project, pk)
    if card is None:
        raise Http404
    return card


@require_POST
@project_page("triage")
def alert_triage(request: ProjectRequest, pk: int) -> HttpResponse:
    """Save an alert's triage."""
    project = request.access.project
    card = find_card(project, pk)
    members = members_of(project)
    form = AlertForm(members, card.alert, request.POST)
    changes = form.changes() if form.is_valid() else {}
    if changes:
        triage(card.alert, by=request.user, **changes)
    if request.htmx:
        # Render the card with the stored alert.
        is_open = bool(request.POST.get("open", "note" in request.POST))
        shown = (AlertForm(members, card.alert) if is_open else None) if form.is_valid() else form
        context = {
            **{"card": card, "form": shown, "saved": bool(changes), "swapped": True},
            **_rights(request),
            **_tabs(project, QueryDict(urlsplit(request.htmx.current_url or "").query)),
        }
        return render(
            request, "alerts/regressions/_alert.html", context, status=200 if form.is_valid() else 422
        )
    if form.is_valid():
        messages.success(request, f"Alert {pk}: {card.alert.state_label.lower()}.")
    for errors in form.errors.values():
        for error in errors:
            messages.error(request, str(error))
    return redirect(f"{reverse('regressions', args=[project.slug])}?state={card.alert.state}#alert-{pk}")


@require_POST
@project_page("triage")
def triage_selected(request: ProjectRequest) -> HttpResponse:
    """Change the selected alerts."""
    project = request.access.project
    form = BulkForm(members_of(project), request.POST)
    selected = [pk for value in request.POST.getlist("alert") if (pk := key_of(value))]
    if not form.is_valid():
        for errors in form.errors.values():
            messages.error(request, str(errors[0]))
    elif not selected or not form.changes():
        messages.error(request, "Nothing changed. Select regressions, and a state or an assignee.")
    else:
        alerts = Alert.objects.filter(project=project, pk__in=selected).select_related("assignee", "project")
        changed = triage_all(list(alerts), by=request.user, **form.changes())
        messages.success(request, f"Changed {counted(changed, 'regression')}.")
    query = posted_query(request).urlencode()
    return redirect(f"{reverse('regressions', args=[project.slug])}{f'?{query}' if query else ''}")


@require_safe
@project_page()
def alert_details(request: ProjectRequest, pk: int) -> HttpResponse:
    """Return what a card shows once it is opened."""
    project = request.access.project
    card = find_card(project, pk)
    context = {"card": card, "form": AlertForm(members_of(project), card.alert), **_rights(request)}
    return render(request, "alerts/regressions/_alert_details.html", context)


@require_safe
@project_page()
def alert_markdown(request: ProjectRequest, pk: int) -> HttpResponse:
    """Return an alert as Markdown, to paste into an issue."""
    card = find_card(request.access.project, pk)
    text = alert_as_markdown(card, request.build_absolute_uri("/").rstrip("/"))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("run")
def alert_confirm(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show which fresh trials confirm an alert, and start them."""
    project = request.access.project
    card = find_card(project, pk)
    if request.method == "POST":
        try:
            start_confirmation(card.alert, by=request.user)
        except RequestError as error:
            messages.error(request, str(error))
        return redirect(f"{reverse('regressions', args=[project.slug])}?state={card.alert.state}#alert-{pk}")
    plan, problem = None, ""
    try:
        plan = plan_confirmation(card.alert)
    except Unconfirmable as error:
        problem = str(error)
    return render(
        request, "alerts/regressions/confirm.html", {"card": card, "plan": plan, "problem": problem}
    )


@require_POST
@project_page("upload")
def alert_revert(request: ProjectRequest, pk: int) -> HttpResponse:
    """Make the guidance before the alert's the suite's again."""
    project = request.access.project
    card = find_card(project, pk)
    try:
        in_files = revert_guidance(card.alert, by=request.user)
    except Unrevertable as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _reverted_sentence(card.alert.run, in_files=in_files))
    return redirect(f"{reverse('regressions', args=[project.slug])}?state={card.alert.state}#alert-{pk}")


def _reverted_sentence(run: Run, *, in_files: bool) -> str:
    guidance = run.baseline.guidance if run.baseline else None
    has = f"{run.suite.name} has {guidance_words(guidance)} again."
    if in_files:
        return f"{has} Change its files elsewhere, too, such as in a repository."
    return (
        f"{has} Its files still have {guidance_words(run.guidance)}: the next upload of them brings it back."
    )


@require_safe
@project_page()
def alert_evidence(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show how far an alert's confirmation is; at its end htmx stops asking."""
    card = find_card(request.access.project, pk)
    over = not (card.fresh and card.fresh.is_open)
    return render(
        request, "alerts/regressions/_evidence.html", {"card": card}, status=STOP_POLLING if over else 200
    )
