"""Uploading suites. Their pages stand in `runs.views.suites`, as they show what was run."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.http import HttpResponse
from django.views.decorators.http import require_POST

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import page_or_fragment
from scenarios.bundles import Bundle
from scenarios.formats import parse_files
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.problems import ScenarioFileError
from scenarios.forms import UploadForm
from scenarios.imports import Imported, import_files
from scenarios.quoting import Quoted, quoted


@dataclass(frozen=True)
class Uploaded:
    """What came of an upload: stored suites, or checked ones, or problems."""

    name: str
    imported: tuple[Imported, ...] = ()
    checked: tuple[ParsedSuite, ...] = ()
    problems: list[Quoted] = field(default_factory=list)
    hints: list[Quoted] = field(default_factory=list)

    @property
    def status(self) -> int:
        return 422 if self.problems else 200


@require_POST
@project_page("upload")
def suite_upload(request: ProjectRequest) -> HttpResponse:
    """Store the uploaded suites, or say every problem of them with its line."""
    form = UploadForm(request.POST, request.FILES)
    uploaded = _take(request, form) if form.is_valid() else None
    context = {"form": form, "uploaded": uploaded}
    status = uploaded.status if uploaded else 422
    return page_or_fragment(
        request, "scenarios/upload.html", "scenarios/_uploaded.html", context, status=status
    )


def _take(request: ProjectRequest, form: UploadForm) -> Uploaded:
    name = ", ".join(str(each.name) for each in form.cleaned_data["file"])
    files: dict[str, bytes] = {}
    try:
        bundle = form.bundle()
        files = dict(bundle.files)
        if form.cleaned_data["check"]:
            return _checked(name, bundle, request.access.project.command_pattern)
        imported = import_files(bundle, project=request.access.project, by=request.user)
    except ScenarioFileError as error:
        refused = quoted([problem for problem in error.problems if not problem.lint], files)
        return Uploaded(name, problems=refused, hints=quoted([p for p in error.problems if p.lint], files))
    lints = [lint for each in imported for lint in each.lints]
    return Uploaded(name, imported=imported, hints=quoted(lints, files))


def _checked(name: str, bundle: Bundle, pattern: str) -> Uploaded:
    suites = parse_files(
        bundle.files, name=bundle.name, command_pattern=pattern, executables=bundle.executables
    )
    lints = [lint for suite in suites for lint in suite.lints]
    return Uploaded(name, checked=tuple(suites), hints=quoted(lints, bundle.files))
