"""Export runs and import other programs' results."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalhub.lib.numbers import counted
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.forms import FileForm
from runs.errors import RequestError
from runs.exchange.exports.exports import EXPORTS, export_run
from runs.exchange.imports.import_results import import_results
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


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("upload")
def run_import(request: ProjectRequest) -> HttpResponse:
    """Import another program's results, or show why that failed."""
    if request.method != "POST":
        return render(request, "exchange/results_files/import.html", {"form": FileForm()})
    form = FileForm(request.POST, request.FILES)
    if not form.is_valid():
        return render(request, "exchange/results_files/import.html", {"form": form}, status=422)
    file = form.cleaned_data["file"]
    try:
        runs = import_results(request.access.project, file.read(), str(file.name), by=request.user)
    except (RequestError, ScenarioFileError) as error:
        return render(
            request, "exchange/results_files/import.html", {"form": form, "problem": str(error)}, status=422
        )
    if len(runs) == 1:
        messages.success(request, f"Imported {file.name} as run {runs[0].pk}.")
        return redirect(runs[0])
    messages.success(
        request,
        f"Imported {counted(len(runs), 'run')} from {file.name}: {', '.join(str(run.pk) for run in runs)}.",
    )
    return redirect("run-list", request.access.project.slug)
