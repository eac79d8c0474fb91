"""Views of an alert's confirmation: its plan, its start and its progress."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import STOP_POLLING
from runs.errors import Unconfirmable
from runs.models.comparison import Evidence
from runs.pages.regressions.views import find_card
from runs.planning.confirmation import plan_confirmation, start_confirmation


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("run")
def alert_confirm(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show which fresh trials confirm an alert, and start them."""
    project = request.access.project
    card = find_card(project, pk)
    if request.method == "POST":
        try:
            start_confirmation(card.alert, by=request.user)
        except Unconfirmable as error:
            messages.error(request, str(error))
        return redirect(f"{reverse('regressions', args=[project.slug])}?state={card.alert.state}#alert-{pk}")
    plan, problem = None, ""
    try:
        plan = plan_confirmation(card.alert)
    except Unconfirmable as error:
        problem = str(error)
    return render(request, "regressions/confirm.html", {"card": card, "plan": plan, "problem": problem})


@require_safe
@project_page()
def alert_evidence(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show how far an alert's confirmation is; at its end htmx stops asking."""
    card = find_card(request.access.project, pk)
    over = card.alert.evidence != Evidence.CONFIRMING
    return render(request, "regressions/_evidence.html", {"card": card}, status=STOP_POLLING if over else 200)
