"""Views of review rounds and of judges' calibrations."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from runs.errors import RequestError
from runs.models import ReviewRound, RoundItem
from runs.review.calibrations import JudgeVersion, calibration_of, drifts, judge_versions, repeated_judgings
from runs.review.review_page.forms import ANSWERS, LabelForm, RoundForm
from runs.review.review_page.views import names_of_members, suites_of
from runs.review.review_rounds import assign, decide_item, draw, member_named, next_item, rounds_of

MOST_VERSIONS = 4
"""Judge versions shown at once; the newest suffices for most, the others have their own address."""


@require_safe
@project_page()
def calibration(request: ProjectRequest) -> HttpResponse:
    """Compare judge versions with people's labels."""
    project = request.access.project
    versions = judge_versions(project)
    chosen = JudgeVersion.of(request.GET.get("judge", ""))
    shown = [chosen] if chosen in versions else versions[:MOST_VERSIONS]
    repeated = repeated_judgings(project)
    context = {
        "tab": "calibration",
        "found": [calibration_of(project, version, repeated) for version in shown if version is not None],
        "judges": [(version.value, str(version)) for version in versions],
        "judge": chosen.value if chosen else "",
        "drifts": drifts(repeated),
        "rounds": list(rounds_of(project)[:20]),
        "suites": suites_of(request),
        "may_review": request.access.may("review"),
        "project": project,
    }
    return render(request, "review/reviews/calibration.html", context)


@require_POST
@project_page("review")
def round_new(request: ProjectRequest) -> HttpResponse:
    """Draw a sample of a judge's judgings and open it."""
    project, form = request.access.project, RoundForm(request.POST)
    try:
        version = JudgeVersion.of(request.POST.get("judge", ""))
        if not form.is_valid() or version is None:
            raise RequestError("Choose a judge and a sample of 1 to 500 judgings.")
        values = form.cleaned_data
        drawn = draw(
            project,
            version,
            values["n"],
            by=request.user,
            suite=values["suite"],
            is_stratified=values["stratified"],
        )
    except RequestError as error:
        messages.error(request, str(error))
        return redirect("calibration", project.slug)
    return redirect("round-detail", project.slug, drawn.pk)


def _find_round(request: ProjectRequest, pk: int) -> ReviewRound:
    review_round = rounds_of(request.access.project).filter(pk=pk).first()
    if review_round is None:
        raise Http404
    return review_round


@require_safe
@project_page()
def round_detail(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show the next item of a round, without the judge's answer, and everything decided so far."""
    review_round = _find_round(request, pk)
    may_review = request.access.may("review")
    item = next_item(review_round, request.user) if may_review else None
    related = ("judging__trial__scenario", "by", "assignee")
    items = list(
        review_round.items.select_related(*related).defer("judging__content", "judging__trial__scores")
    )
    context: dict[str, Any] = {
        "tab": "calibration",
        "round": review_round,
        "item": item and next((each for each in items if each.pk == item.pk), None),
        "decided": [each for each in items if each.at],
        "waiting": [each for each in items if not each.at],
        "members": names_of_members(request),
        "may_review": may_review,
    }
    return render(request, "review/reviews/round.html", context)


def _find_item(request: ProjectRequest, pk: int) -> RoundItem:
    rows = RoundItem.objects.filter(round__project=request.access.project).select_related("round__project")
    return get_object_or_404(rows, pk=pk)


@require_POST
@project_page("review")
def item_decide(request: ProjectRequest, pk: int) -> HttpResponse:
    """Store a person's answer to an item of a round."""
    item, form = _find_item(request, pk), LabelForm(request.POST)
    try:
        if not form.is_valid():
            raise RequestError(form.sentence or "Choose pass, fail or unclear.")
        answer = ANSWERS[form.cleaned_data["answer"]]
        decide_item(
            item, passed=answer, criteria=form.criteria(), note=form.cleaned_data["note"], by=request.user
        )
    except RequestError as error:
        messages.error(request, str(error))
    return redirect("round-detail", request.access.project.slug, item.round_id)


@require_POST
@project_page("review")
def item_assign(request: ProjectRequest, pk: int) -> HttpResponse:
    """Assign an item to a member of the project, or to nobody."""
    item, name = _find_item(request, pk), request.POST.get("assignee", "")
    seen = request.POST.get("seen", "")
    try:
        assign(
            item,
            member_named(request.access.project, name),
            seen=int(seen) if seen.isdecimal() and len(seen) < 19 else None,
        )
    except RequestError as error:
        messages.error(request, str(error))
    return redirect(reverse("round-detail", args=[request.access.project.slug, item.round_id]))
