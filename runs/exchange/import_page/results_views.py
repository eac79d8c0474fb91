"""Export runs and import other programs' results."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalhub.lib.numbers import counted
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.forms import FileForm
from evalhub.web.fragments import page_or_fragment
from runs.errors import RequestError
from runs.exchange.exports.exports import EXPORTS, export_run
from runs.exchange.exports.results_preview import describe_program, preview_facts
from runs.exchange.imports.import_results import import_results
from runs.exchange.imports.preview_results import preview_results
from runs.models import Run
from runs.results.find_run import find_shown_run
from scenarios.formats.problems import ScenarioFileError


@require_safe
@project_page()
def run_download(request: ProjectRequest, pk: int, name: str) -> HttpResponse:
    """Send a run in one of the export formats."""
    if name not in EXPORTS:
        raise Http404
    run, export = find_shown_run(request, pk), EXPORTS[name]
    charset = "" if export.is_archive else "; charset=utf-8"
    response = HttpResponse(export_run(run.pk, name), content_type=f"{export.media_type}{charset}")
    response["Content-Disposition"] = f'attachment; filename="run-{run.pk}.{export.ending}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


class ResultsForm(FileForm):
    """A file of results, and the seal of the preview that is confirmed."""

    keep = forms.CharField(required=False, max_length=64)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("upload")
def run_import(request: ProjectRequest) -> HttpResponse:
    """Preview a file of results, or import it if it is what a preview showed. Nothing is stored before."""
    if request.method != "POST":
        return render(request, "exchange/results_files/import.html", {"form": ResultsForm()})
    form = ResultsForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, 422, form=form)
    file, keep = form.cleaned_data["file"], form.cleaned_data["keep"]
    name, content = str(file.name), file.read()
    try:
        preview = preview_results(request.access.project, content, name)
        if keep != preview.seal:
            return _page(request, 200, form=form, preview=preview, is_other=bool(keep))
        runs = import_results(request.access.project, content, name, by=request.user)
    except (RequestError, ScenarioFileError) as error:
        return _page(request, 422, form=form, problem=str(error))
    return _show_imported(request, name, runs)


def _page(request: ProjectRequest, status: int, **context: Any) -> HttpResponse:
    preview = context.get("preview")
    if preview:
        context["program"] = describe_program(preview)
        context["runs"] = [(each, preview_facts(each)) for each in preview.runs]
    return page_or_fragment(
        request,
        "exchange/results_files/import.html",
        "exchange/results_files/_preview.html",
        context,
        status=status,
    )


def _show_imported(request: ProjectRequest, name: str, runs: tuple[Run, ...]) -> HttpResponse:
    if len(runs) == 1:
        messages.success(request, f"Imported {name} as run {runs[0].pk}.")
        return redirect(runs[0])
    numbers = ", ".join(str(run.pk) for run in runs)
    messages.success(request, f"Imported {counted(len(runs), 'run')} from {name}: {numbers}.")
    return redirect("run-list", request.access.project.slug)
