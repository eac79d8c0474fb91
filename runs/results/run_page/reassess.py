"""Judge or grade a run's stored trials again, from its page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from evalhub.lib.numbers import counted
from evalhub.teams.pages import ProjectRequest, project_page
from evaluators.grading.judges.rubric import READY
from runs.engine.stored_trials.adopting import adopt
from runs.engine.stored_trials.reassessed import comparisons
from runs.engine.stored_trials.reassessing import request_reassessment
from runs.engine.stored_trials.reassessment_plan import estimate_reassessment
from runs.errors import RequestError
from runs.models import Reassessment, Run, Target
from runs.targets.providers.registry import JUDGES


class ReassessForm(forms.Form):
    """How to assess again."""

    kind = forms.ChoiceField(choices=Reassessment.Kind.choices)
    judge_model = forms.CharField(required=False, max_length=200)
    rubric = forms.ChoiceField(
        required=False, choices=[("", "each scenario's own"), *((name, name) for name in READY)]
    )
    max_usd = forms.FloatField(required=False, min_value=0.0001, max_value=1_000_000)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(to_post="run")
def reassess_run(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show plans, progress and results of assessing a run again; request one."""
    project = request.access.project
    related = ("project", "suite", "suite_version", "target")
    run = Run.objects.filter(project=project, pk=pk).select_related(*related).first()
    if run is None:
        raise Http404
    here = reverse("run-reassess", args=[project.slug, pk])
    form = ReassessForm(request.POST or None, initial={"kind": "judge"})
    if request.method == "POST":
        try:
            if not form.is_valid():
                name, errors = next(iter(form.errors.items()))
                raise RequestError(f"{name.replace('_', ' ')}: {errors[0]}")
            options = dict(form.cleaned_data)
            requested = request_reassessment(run, options.pop("kind"), by=request.user, **options)
            messages.success(request, f"Requested: {requested}. A worker starts it.")
        except RequestError as error:
            messages.error(request, str(error))
        return redirect(here)
    context: dict[str, Any] = {
        "run": run,
        "form": form,
        "judges": Target.objects.filter(project=project, accepted=True, provider__in=JUDGES)
        .order_by("name")
        .values_list("name", flat=True),
        "plans": [(kind.label, estimate_reassessment(run, kind)) for kind in Reassessment.Kind],
        "found": comparisons(run),
        "may_run": request.access.may("run"),
        "may_review": request.access.may("review"),
    }
    return render(request, "results/run/again.html", context)


@require_POST
@project_page("review")
def reassessment_adopt(request: ProjectRequest, pk: int) -> HttpResponse:
    """Make the scores of a reassessment count."""
    rows = Reassessment.objects.filter(run__project=request.access.project)
    reassessment = rows.filter(pk=pk).first()
    if reassessment is None:
        raise Http404
    try:
        n = adopt(reassessment, by=request.user)
        messages.success(request, f"Adopted the scores of {counted(n, 'trial')}; the run is recomputed.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect("run-reassess", request.access.project.slug, reassessment.run_id)
