"""Views of the regressions queue: its cards with their buttons, confirmations, and an alert as Markdown for an issue."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalhub.lib.numbers import format_count, format_percent
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.middleware import STOP_POLLING, page_or_fragment, posted_query
from evalhub.web.paging import key_of
from runs.alerts.alert_page.alerts import TITLES, AlertCard, AlertForm, BulkForm, Lost, alert_card, alert_page
from runs.alerts.api import (
    NOBODY,
    AlertCounts,
    AlertListFilters,
    active_alert_filters,
    alert_counts,
    revert_guidance,
    triage,
    triage_all,
)
from runs.compare.differences import guidance_words
from runs.compare.shown_changes import reference_words
from runs.errors import RequestError, Unconfirmable, Unrevertable
from runs.launch.confirmation import plan_confirmation, start_confirmation
from runs.models import Alert, Run
from runs.models.comparison import AlertKind, AlertState, Evidence, state_label
from runs.results.address_filters import no_match

CONFIRM, REVERT = "confirm", "revert"
SHOWN = 3
LABELS = {AlertState.ACKNOWLEDGED: "Acknowledge", AlertState.INVESTIGATING: "Investigate"}
"""Where a button and its state differ."""
TRIAGED = tuple(each for each in AlertState if each is not AlertState.UNTRIAGED)
BY_KIND: dict[str, tuple[str, ...]] = {
    AlertKind.AFTER_CHANGE: (
        AlertState.WONT_FIX,
        REVERT,
        AlertState.ACKNOWLEDGED,
        CONFIRM,
        AlertState.INVALID,
    )
}
"""What comes first, for kinds that differ from a regression."""
OF_REGRESSION = (AlertState.ACKNOWLEDGED, CONFIRM, AlertState.INVALID, AlertState.WONT_FIX)


@dataclass(frozen=True)
class CardButton:
    """One button of a card."""

    does: str
    """The state that it sets, `CONFIRM` or `REVERT`."""
    label: str
    key: str = ""
    """The key that presses it."""


@dataclass(frozen=True)
class CardButtons:
    """The buttons of a card: those that it shows, and those inside it."""

    shown: tuple[CardButton, ...]
    inside: tuple[CardButton, ...]


@dataclass(frozen=True)
class OfferedButtons:
    """Actions available to this role."""

    rights: Collection[str]

    def buttons_of(self, card: AlertCard) -> CardButtons:
        """Return what the person may do with an alert, the likeliest first."""
        order = BY_KIND.get(card.alert.kind, OF_REGRESSION)
        possible = [
            action for action in dict.fromkeys((*order, *TRIAGED)) if _is_possible(action, card, self.rights)
        ]
        buttons = tuple(_button(each, card) for each in possible)
        return CardButtons(buttons[:SHOWN], buttons[SHOWN:])


def _is_possible(does: str, card: AlertCard, rights: Collection[str]) -> bool:
    alert = card.alert
    if does == CONFIRM:
        return "run" in rights and alert.is_confirmable
    if does == REVERT:
        return "upload" in rights and card.is_revertible
    return "triage" in rights and does != alert.state


def _button(does: str, card: AlertCard) -> CardButton:
    if does == CONFIRM:
        return CardButton(does, "Confirm…", "c")
    if does == REVERT:
        guidance = card.alert.run.baseline.guidance if card.alert.run.baseline else None
        return CardButton(does, f"Revert to {guidance_words(guidance)}")
    key = "a" if does == AlertState.ACKNOWLEDGED else ""
    return CardButton(does, LABELS.get(AlertState(does)) or state_label(does, card.alert.kind), key)


MOST = 20
"""Most scenarios that are listed."""


def alert_as_markdown(card: AlertCard, host: str) -> str:
    """Return a card as Markdown with links; `host` is the address of this server."""
    alert, run = card.alert, card.alert.run
    address = f"{host}{run.get_absolute_url()}"
    model = f" with {_plain(run.model)}" if run.model else ""
    parts = [
        f"## {_plain(card.title)}: {_plain(run.suite.name)} on {_plain(run.target.name)}{model}, [run {run.pk}]({address})",
        _evidence(card),
        "\n".join(f"- {_change(each)}" for each in card.regressed),
        _table(card.lost),
        "\n".join(
            f"- {difference.label}: {_plain(difference.before) or 'none'} → {_plain(difference.after) or 'none'}"
            for difference in card.differences
        ),
        _plain(alert.note),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _evidence(card: AlertCard) -> str:
    alert = card.alert
    if alert.drift:
        return f"**Drift**. {card.sentence}"
    side = reference_words(alert.run.old_side, alert.run.baseline_id)
    baseline = f"Compared with {side}." if alert.run.baseline_id else ""
    said = " ".join(filter(None, (baseline, card.sentence, alert.reason)))
    return f"**{alert.get_evidence_display()}**. {_plain(said)}".strip()


def _change(change: object) -> str:
    size, interval = getattr(change, "size", ""), getattr(change, "interval", "")
    return f"{getattr(change, 'label', '')} {size}{f' ({interval})' if interval else ''}, {getattr(change, 'worse', '')}"


def _table(lost: tuple[Lost, ...]) -> str:
    if not lost:
        return ""
    rows = [
        f"| {_plain(scenario.key)} | {format_percent(scenario.before)} | {format_percent(scenario.after)} | {_plain(scenario.reason)} |"
        for scenario in lost[:MOST]
    ]
    more = [f"\n{len(lost) - MOST} more scenarios."] if len(lost) > MOST else []
    return "\n".join(["| scenario | baseline | now | why |", "| --- | --- | --- | --- |", *rows, *more])


def _plain(text: str) -> str:
    """Return a text on one line in which Markdown finds no markup."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


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
        messages.success(request, f"Changed {format_count(changed, 'regression')}.")
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
