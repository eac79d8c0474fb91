"""Views of the queue of judges' statements, what people send there, and the reasons of one criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from evalhub.lib.limits import LONGEST_REASON
from evalhub.lib.numbers import format_count
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.forms import SentenceForm
from runs.compare.default_suite import choose_suite
from runs.errors import RequestError
from runs.models import JudgingRecord, Overrule, Run, Trial
from runs.models.judging import ReviewWord
from runs.models.review import Right
from runs.review.calibrations import (
    CELLS,
    MOST_SHOWN,
    JudgeVersion,
    calibration_of,
    find_drifts,
    judge_and_gates,
    judge_versions,
    repeated_judgings,
)
from runs.review.overruling import overrule, undo_overrule
from runs.review.reviewing import record_who_was_right, review, reviews_of
from runs.review.statement_groups import (
    QueueFilters,
    Read,
    StatementGroup,
    StatementPlace,
    group_statements,
    read_content,
    review_queue,
)
from scenarios.models import Suite

MOST_REFERENCES = 200


class NoteForm(SentenceForm):
    """A note that belongs to a decision."""

    note = forms.CharField(required=False, max_length=LONGEST_REASON)


class StatementForm(NoteForm):
    """An opinion of one or several statements."""

    word = forms.ChoiceField(choices=ReviewWord.choices)
    refs = forms.CharField(max_length=20_000)

    def clean_refs(self) -> list[StatementPlace]:
        """Return the references."""
        references = [StatementPlace.of(each) for each in self.cleaned_data["refs"].split(",")]
        known = [each for each in references if each is not None]
        if len(known) < len(references) or len(known) > MOST_REFERENCES:
            raise forms.ValidationError("These statements are unknown. Load the page again.")
        return known


class OverruleForm(SentenceForm):
    """A score or criterion of a trial, its new verdict or number, and the reason."""

    score = forms.RegexField(
        r"^\d{1,5}(:.{1,200})?$",
        error_messages={"invalid": "Choose a score.", "required": "Choose a score."},
    )
    verdict = forms.ChoiceField(choices=[("", ""), ("pass", "pass"), ("fail", "fail")], required=False)
    value = forms.FloatField(
        required=False, error_messages={"invalid": "The new score isn't a number. Give one from 0 to 1."}
    )
    reason = forms.CharField(max_length=LONGEST_REASON, required=False)

    def decision(self) -> dict[str, Any]:
        """Return what `overrule` takes."""
        position, _, criterion = self.cleaned_data["score"].partition(":")
        verdict = self.cleaned_data["verdict"]
        return {
            "position": int(position),
            "criterion": criterion,
            "passed": verdict == "pass" if verdict else None,
            "value": self.cleaned_data["value"],
            "reason": self.cleaned_data["reason"],
        }


class ResolutionForm(NoteForm):
    """Who was right."""

    right = forms.ChoiceField(choices=Right.choices)


MOST_RUNS = 50
MOST_JUDGINGS = 600
MOST_COLUMNS = 6
MOST_STATEMENTS = 40


@dataclass(frozen=True)
class RationaleFilters:
    """Judges' statements on the runs with one tool and guidance version."""

    tool: str
    guidance: str
    runs: int
    judged: int
    mean: float | None
    """Mean score of the chosen criterion; None without one."""
    groups: dict[str, list[StatementGroup]]
    """By heading: reasons of the criterion if the judge gave some, issues, highlights."""


@dataclass(frozen=True)
class Rationales:
    """Content of the page."""

    suites: list[Suite]
    suite: Suite | None
    criterion: str
    criteria: list[str]
    readings: list[RationaleFilters]


def rationales_of(project: Project, slug: str, criterion: str) -> Rationales:
    """Return the statements of a suite's recent runs by tool and guidance version, newest first. Four queries; two more without a chosen suite."""
    suites, suite = choose_suite(project, slug, prefers_judged=True)
    if suite is None:
        return Rationales(suites, None, criterion, [], [])
    columns: dict[tuple[str, str], list[int]] = {}
    runs = Run.objects.filter(suite=suite).select_related("guidance").defer("guidance__files")
    for run in runs.order_by("-pk")[:MOST_RUNS]:
        guidance = str(run.guidance) if run.guidance else "no guidance"
        columns.setdefault((run.tool_version or "unknown tool version", guidance), []).append(run.pk)
    newest = dict(list(columns.items())[:MOST_COLUMNS])
    judgings = _judgings([pk for keys in newest.values() for pk in keys])
    criteria = sorted(
        {name for readings in judgings.values() for _, _, content in readings for name in content.criteria}
    )
    chosen = criterion if criterion in criteria else ""
    readings = [_reading(*key, keys, judgings, chosen) for key, keys in newest.items()]
    return Rationales(suites, suite, chosen, criteria, readings)


def _judgings(runs: list[int]) -> dict[int, list[Read]]:
    """Return the newest counting judgings by run. One query."""
    rows = JudgingRecord.objects.filter(trial__run__in=runs, trial__round=0, counts=True).order_by("-pk")
    judgings: dict[int, list[Read]] = {}
    values = rows.values_list("trial__run", "pk", "trial", Cast("content", TextField()))
    for run, pk, trial, text in values[:MOST_JUDGINGS]:
        judgings.setdefault(run, []).append((pk, trial, read_content(text)))
    return judgings


def _reading(
    tool: str, guidance: str, runs: list[int], judgings: dict[int, list[Read]], criterion: str
) -> RationaleFilters:
    selected = [judging for run in runs for judging in judgings.get(run, ())]
    scores = [content.criteria[criterion] for _, _, content in selected if criterion in content.criteria]
    if criterion:
        selected = [judging for judging in selected if criterion in judging[2].criteria]
    groups = group_statements(selected, criterion)
    sides = {"Reasons": "criterion", "Issues": "negative", "Highlights": "positive"}
    by_heading = {name: [each for each in groups if each.polarity == side] for name, side in sides.items()}
    if not by_heading["Reasons"]:
        del by_heading["Reasons"]
    return RationaleFilters(
        tool,
        guidance,
        len(runs),
        len(selected),
        sum(scores) / len(scores) if scores else None,
        by_heading,
    )


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
        undo_overrule(overruled, by=request.user)
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
        "drifts": find_drifts(repeated),
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
        "n": format_count(sum(each.judged for each in page.readings), "judging"),
    }
    return render(request, "review/reviews/rationales.html", context)
