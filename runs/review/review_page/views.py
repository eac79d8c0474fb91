"""Views of the queue of judges' statements, and of what people decide in it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from evalhub.lib.numbers import counted
from evalhub.teams.pages import ProjectRequest, project_page
from runs.errors import RequestError
from runs.models import JudgingRecord, Overrule, Trial
from runs.models.review import Right
from runs.review.calibrations import JudgeVersion, calibration_of, drifts, judge_versions, repeated_judgings
from runs.review.judge_and_gates import CELLS, MOST_SHOWN, judge_and_gates
from runs.review.overruling import overrule, undo
from runs.review.review_page.forms import OverruleForm, ResolutionForm, StatementForm
from runs.review.review_page.rationales import rationales_of
from runs.review.reviewing import record_who_was_right, review, reviews_of
from runs.review.statement_groups import QueueFilters, review_queue
from scenarios.models import Suite

MOST_GROUPS = 40
MOST_VERSIONS = 4
"""Judge versions shown at once; the newest suffices for most, the others have their own address."""


def suites_of(request: ProjectRequest) -> list[tuple[str, str]]:
    """Return the project's suites as choices. One query."""
    return list(Suite.objects.filter(project=request.access.project).values_list("slug", "name"))


def back(request: ProjectRequest, fallback: str) -> HttpResponse:
    """Redirect to the page that sent the form, else to the fallback."""
    address = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(address, allowed_hosts=None) and address.startswith("/")
    return redirect(address if is_ours else fallback)


@require_safe
@project_page()
def reviews(request: ProjectRequest) -> HttpResponseBase:
    """List judges' statements on the newest runs, grouped by similar wording."""
    project, filters = request.access.project, QueueFilters.of(request.GET)
    groups, choices = review_queue(project, filters)
    context = {
        "tab": "reviews",
        "groups": groups[:MOST_GROUPS],
        "hidden": max(0, len(groups) - MOST_GROUPS),
        "reviewed": sum(group.reviewed > 0 for group in groups),
        "total": len(groups),
        "filters": filters,
        "choices": choices,
        "suites": suites_of(request),
        "judges": [(each.value, str(each)) for each in judge_versions(project)],
        "may_review": request.access.may("review"),
        "here": request.get_full_path(),
    }
    return render(request, "review/reviews/reviews.html", context)


@require_POST
@project_page("review")
def statement_review(request: ProjectRequest) -> HttpResponse:
    """Store a person's opinion of one or several statements."""
    project, form = request.access.project, StatementForm(request.POST)
    here = reverse("reviews", args=[project.slug])
    if not form.is_valid():
        return _show_refusal(request, form.sentence, here)
    references = form.cleaned_data["refs"]
    rows = JudgingRecord.objects.filter(trial__run__project=project).select_related("trial__run__project")
    judgings = rows.in_bulk([reference.judging for reference in references])
    try:
        for reference in references:
            if reference.judging not in judgings:
                raise Http404
            review(
                judgings[reference.judging],
                by=request.user,
                polarity=reference.polarity,
                position=reference.position,
                word=form.cleaned_data["word"],
                comment=form.cleaned_data["note"],
            )
    except RequestError as error:
        return _show_refusal(request, str(error), here)
    if not request.htmx:
        return back(request, here)
    by_reference = reviews_of(judgings)
    shown = [one for reference in references for one in by_reference.get(reference, ())]
    context = {
        "references": references,
        "shown": shown,
        "name": request.POST.get("key", "")[:60],
        "next": request.POST.get("next", ""),
    }
    return render(request, "review/reviews/_reviewed.html", context)


def _show_refusal(request: ProjectRequest, sentence: str, fallback: str) -> HttpResponse:
    if request.htmx:
        return render(request, "review/reviews/_refused.html", {"sentence": sentence}, status=422)
    messages.error(request, sentence)
    return back(request, fallback)


def _find_trial(request: ProjectRequest, pk: int) -> Trial:
    trials = Trial.objects.filter(run__project=request.access.project).select_related("run__project")
    return get_object_or_404(trials, pk=pk)


@require_POST
@project_page("review")
def trial_overrule(request: ProjectRequest, pk: int) -> HttpResponse:
    """Overrule one score of a trial."""
    trial, form = _find_trial(request, pk), OverruleForm(request.POST)
    try:
        if not form.is_valid():
            raise RequestError(form.sentence)
        overrule(trial, **form.decision(), by=request.user)
        messages.success(request, "Overruled the score; outcome and rollups follow.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect(reverse("trial-detail", args=[request.access.project.slug, pk]) + "#judge")


@require_POST
@project_page("review")
def overrule_undo(request: ProjectRequest, pk: int) -> HttpResponse:
    """Put an overruled score back."""
    rows = Overrule.objects.filter(trial__run__project=request.access.project).select_related("trial")
    overruled = rows.filter(pk=pk).first()
    if overruled is None:
        raise Http404
    try:
        undo(overruled, by=request.user)
        messages.success(request, "Put the original score back.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect(
        reverse("trial-detail", args=[request.access.project.slug, overruled.trial_id]) + "#judge"
    )


@require_safe
@project_page()
def disagreements(request: ProjectRequest) -> HttpResponse:
    """Show the 2 × 2 of judge and gates with a queue for each off-diagonal cell."""
    chosen = request.GET.get("suite", "")
    table = judge_and_gates(request.access.project, chosen)
    context = {
        "tab": "disagreements",
        "table": table,
        "queues": [(CELLS["weak"], "weak", table.weak), (CELLS["fooled"], "fooled", table.fooled)],
        "most": MOST_SHOWN,
        "rights": Right.choices,
        "suites": suites_of(request),
        "suite": chosen,
        "may_review": request.access.may("review"),
        "here": request.get_full_path(),
    }
    return render(request, "review/reviews/disagreements.html", context)


@require_safe
@project_page()
def calibration(request: ProjectRequest) -> HttpResponse:
    """Compare judge versions with people's reviews of their verdicts."""
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
        "project": project,
    }
    return render(request, "review/reviews/calibration.html", context)


@require_POST
@project_page("review")
def trial_resolve(request: ProjectRequest, pk: int) -> HttpResponse:
    """Record who was right about a trial."""
    trial, form = _find_trial(request, pk), ResolutionForm(request.POST)
    try:
        if not form.is_valid():
            raise RequestError("Choose who was right.")
        record_who_was_right(
            trial, right=form.cleaned_data["right"], note=form.cleaned_data["note"], by=request.user
        )
        messages.success(request, f"Resolved trial {pk}: {Right(form.cleaned_data['right']).label.lower()}.")
    except RequestError as error:
        messages.error(request, str(error))
    return back(request, reverse("disagreements", args=[request.access.project.slug]))


@require_safe
@project_page()
def rationales(request: ProjectRequest) -> HttpResponseBase:
    """Show a criterion's reasons by tool and guidance version, side by side."""
    project = request.access.project
    page = rationales_of(project, request.GET.get("suite", ""), request.GET.get("criterion", ""))
    context: dict[str, Any] = {
        "tab": "rationales",
        "page": page,
        "suite": page.suite,
        "readings": page.readings,
        "suites": [(each.slug, each.name) for each in page.suites],
        "n": counted(sum(each.judged for each in page.readings), "judging"),
    }
    return render(request, "review/reviews/rationales.html", context)
