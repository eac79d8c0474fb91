"""Views that export runs, import other programs' results, and import people's sessions after a preview."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.contrib import messages
from django.core import signing
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from msgspec import Struct

from evalhub.lib.limits import LARGEST_MESSAGE
from evalhub.lib.numbers import format_count
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.forms import FileForm
from evalhub.web.middleware import page_or_fragment
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.sessions.kept import KeptSession
from runs.errors import RequestError
from runs.exchange.exports.exports import EXPORTS, export_run
from runs.exchange.exports.results_preview import describe_program, preview_facts
from runs.exchange.imports.import_results import import_results
from runs.exchange.imports.import_sessions import counted_once, session_tool, sort_sessions, store_sessions
from runs.exchange.imports.preview_results import preview_results
from runs.exchange.imports.session_files import read_uploads
from runs.models import Run
from runs.results.find_run import find_shown_run
from scenarios.formats.parsed import ScenarioFileError
from scenarios.forms import FilesField


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
    messages.success(request, f"Imported {format_count(len(runs), 'run')} from {name}: {numbers}.")
    return redirect("run-list", request.access.project.slug)


SALT = "sessions"
PREVIEW_SECONDS = 3600
MOST_SHOWN = 50
"""Sessions that a preview lists."""


class SessionsForm(forms.Form):
    """Session files and the tool whose commands are kept."""

    tool = forms.CharField(max_length=200, error_messages={"required": "Name the tool, such as mytool."})
    pattern = forms.CharField(required=False, max_length=500)
    whole = forms.BooleanField(required=False)
    file = FilesField(
        error_messages={
            "required": "Choose a session file.",
            "empty": "A file is empty. Choose others.",
        }
    )


class _Preview(Struct, frozen=True):
    """What a preview showed, for storing exactly that."""

    project: int
    binary: str
    pattern: str
    sessions: list[KeptSession]
    problems: list[str]


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("upload")
def session_import(request: ProjectRequest) -> HttpResponse:
    """Preview an upload, or store what a preview showed. Nothing is stored before."""
    if request.method != "POST":
        return _sessions_view_page(request, form=SessionsForm())
    try:
        if preview := request.POST.get("preview"):
            return _store(request, preview)
        form = SessionsForm(request.POST, request.FILES)
        if form.is_valid():
            return _preview(request, form)
        return _sessions_view_page(request, form=form, status=422)
    except (RequestError, ScenarioFileError) as error:
        return _sessions_view_page(request, form=SessionsForm(request.POST), problem=str(error), status=422)


def _sessions_view_page(request: ProjectRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    return render(request, "exchange/sessions/import.html", context, status=status)


def _preview(request: ProjectRequest, form: SessionsForm) -> HttpResponse:
    fields, project = form.cleaned_data, request.access.project
    tool = session_tool(fields["tool"], fields["pattern"])
    read = read_uploads([(str(file.name), file.file) for file in fields["file"]], tool, whole=fields["whole"])
    counted_once(read, project, tool)
    sorted_sessions = sort_sessions(project, tool, read.sessions)
    token = ""
    if sorted_sessions.to_store:
        preview = _Preview(
            project.pk, tool.binary, tool.command_pattern, list(sorted_sessions.to_store), read.problems
        )
        token = signing.dumps(msgspec.json.encode(preview).decode(), salt=SALT, compress=True)
    if len(token) > LARGEST_MESSAGE:
        raise RequestError(
            "These sessions are too large for a preview. Use manage.py import_sessions, or fewer files."
        )
    context: dict[str, Any] = {
        "tool": tool,
        "read": read,
        "found": sorted_sessions,
        "shown": sorted_sessions.to_store[:MOST_SHOWN],
        "token": token,
    }
    return _sessions_view_page(request, form=form, **context)


def _store(request: ProjectRequest, token: str) -> HttpResponse:
    project = request.access.project
    try:
        preview = msgspec.json.decode(signing.loads(token, salt=SALT, max_age=PREVIEW_SECONDS), type=_Preview)
    except (signing.BadSignature, msgspec.DecodeError) as error:
        raise RequestError("This preview is no longer valid. Choose the files again.") from error
    if preview.project != project.pk:
        raise RequestError("This preview is of another project. Choose the files again.")
    tool = Tool(binary=preview.binary, command_pattern=preview.pattern)
    run, sorted_sessions = store_sessions(project, tool, preview.sessions, preview.problems, by=request.user)
    if run is None:
        messages.info(request, "These sessions are already imported.")
        return redirect("run-list", project.slug)
    messages.success(
        request, f"Imported {format_count(len(sorted_sessions.to_store), 'session')} as run {run.pk}."
    )
    return redirect(run)
