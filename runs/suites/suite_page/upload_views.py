"""Upload suites and their targets file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_POST

from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import page_or_fragment
from runs.launch.lift import has_skill
from runs.models import Target
from runs.targets.import_targets import import_uploaded_targets
from scenarios.bundles import Bundle
from scenarios.formats.problems import ScenarioFileError
from scenarios.forms import UploadForm
from scenarios.imports import Imported, Preview, import_files, preview, preview_token
from scenarios.models import SuiteVersion
from scenarios.quoting import Quoted, quote_lines
from scenarios.reading import read_suites


@dataclass(frozen=True)
class Uploaded:
    """Result of an upload: stored suites, checked ones, or problems."""

    name: str
    imported: tuple[Imported, ...] = ()
    checked: tuple[Preview, ...] = ()
    """Checked only; nothing is stored."""
    is_other: bool = False
    """Whether the files differ from the checked ones."""
    problems: list[Quoted] = field(default_factory=list)
    hints: list[Quoted] = field(default_factory=list)
    targets: tuple[Target, ...] = ()
    """Targets imported from the bundle."""
    target_problems: list[Quoted] = field(default_factory=list)
    """Problems of the bundle's targets file; the suites are stored anyway."""

    @property
    def status(self) -> int:
        return 422 if self.problems else 200

    @property
    def seal(self) -> str:
        """Return the token that confirms exactly these files."""
        return preview_token(self.checked)

    @property
    def waiting(self) -> list[Imported]:
        """Return the suites whose targets file can be imported."""
        known = bool(self.targets or self.target_problems)
        return [] if known else [each for each in self.imported if each.version.targets_text]


@require_POST
@project_page("upload")
def suite_upload(request: ProjectRequest) -> HttpResponse:
    """Store the uploaded suites, or show every problem with its line."""
    form = UploadForm(request.POST, request.FILES)
    uploaded = _take(request, form) if form.is_valid() else None
    context = {
        "form": form,
        "uploaded": uploaded,
        "skilled": [each.suite for each in uploaded.imported if has_skill(each.suite, each.guidance)]
        if uploaded
        else [],
    }
    status = uploaded.status if uploaded else 422
    response = page_or_fragment(
        request, "suites/suites/upload.html", "suites/suites/_uploaded.html", context, status=status
    )
    if uploaded and uploaded.imported:
        # The list on the page loads itself again.
        response["HX-Trigger"] = "suites-changed"
    return response


def _take(request: ProjectRequest, form: UploadForm) -> Uploaded:
    name = form.title
    files: dict[str, bytes] = {}
    try:
        bundle = form.bundle()
        files = dict(bundle.files)
        keep = form.cleaned_data["keep"]
        if keep or form.cleaned_data["check"]:
            checked = _check_upload(name, bundle, request.access.project)
            if keep != checked.seal:
                return replace(checked, is_other=bool(keep))
        imported = import_files(bundle, project=request.access.project, by=request.user)
    except ScenarioFileError as error:
        refused = quote_lines([problem for problem in error.problems if not problem.lint], files)
        return Uploaded(
            name, problems=refused, hints=quote_lines([p for p in error.problems if p.lint], files)
        )
    hints = quote_lines([lint for suite in imported for lint in suite.lints], files)
    # Import at once for an embedded evalhub; others confirm with a button.
    versions = [suite.version for suite in imported] if settings.EMBEDDED else []
    uploaded = import_uploaded_targets(versions, by=request.user)
    problems = quote_lines(uploaded.problems, _targets_files(versions))
    hints += quote_lines(uploaded.hints, _targets_files(versions))
    return Uploaded(name, imported, hints=hints, targets=uploaded.targets, target_problems=problems)


def _targets_files(versions: list[SuiteVersion]) -> dict[str, bytes]:
    return {each.targets_file: each.targets_text.encode() for each in versions}


def _check_upload(name: str, bundle: Bundle, project: Project) -> Uploaded:
    suites = read_suites(bundle, command_pattern=project.command_pattern)
    lints = [lint for suite in suites for lint in suite.lints]
    previews = tuple(preview(suite, project) for suite in suites)
    return Uploaded(name, checked=previews, hints=quote_lines(lints, bundle.files))
