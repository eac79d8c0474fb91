"""Views that upload suites with their targets file, and that try a command pattern on a transcript."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods, require_POST

from evalhub.lib.limits import LONGEST_TRANSCRIPT
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.forms import SentenceForm
from evalhub.web.middleware import page_or_fragment
from evaluators.model import Transcript
from evaluators.patterns import LONGEST, PatternError
from evaluators.redaction import redact_patterns
from evaluators.tool_use.interaction import result_of, total_of, try_pattern
from evaluators.tool_use.tool import Tool
from runs.launch.lift import has_skill
from runs.models import Target, TranscriptRecord
from runs.targets.import_targets import import_uploaded_targets
from scenarios.bundles import Bundle
from scenarios.commands import Quoted, quote_lines
from scenarios.formats.parsed import ScenarioFileError
from scenarios.forms import UploadForm
from scenarios.imports import Imported, Preview, import_files, preview, preview_token
from scenarios.models import ScenarioVersion, Suite, SuiteVersion
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


MOST_SHOWN = 500
MOST_TRIALS = 30
"""Newest trials of the scenario that are offered."""


class PatternForm(SentenceForm):
    """A pattern or a program's name, and a transcript: pasted, or of a trial."""

    pattern = forms.CharField(required=False, max_length=LONGEST)
    binary = forms.CharField(required=False, max_length=200)
    trial = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    text = forms.CharField(required=False, max_length=LONGEST_TRANSCRIPT, strip=False)

    def __init__(self, data: Any, project: int) -> None:
        super().__init__(data)
        self.project = project

    def clean(self) -> dict[str, Any]:
        """Check that there is something to find and something to find it in."""
        values = super().clean() or {}
        if not self.errors and not (values["pattern"] or values["binary"]):
            raise forms.ValidationError("Enter a pattern, or the tool's program.")
        if not self.errors and not (values["text"] or values["trial"]):
            raise forms.ValidationError("Paste a transcript, or choose a trial.")
        return values

    def transcript(self) -> Transcript:
        """Return the pasted text, else the trial's. Raises `PatternError`."""
        text, trial = self.cleaned_data["text"], self.cleaned_data["trial"]
        if text:
            return Transcript(text=text, source="transcript")
        record = TranscriptRecord.objects.filter(trial__run__project=self.project, trial=trial).first()
        if record is None:
            raise PatternError(f"There is no transcript of trial {trial}.")
        return record.unpack()


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("run")
def suite_pattern(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Show what a pattern finds, beginning with that of a scenario."""
    project = request.access.project
    suite = get_object_or_404(Suite, project=project, slug=suite_slug)
    newest = suite.versions.first()
    versions = list(newest.scenario_versions.select_related("scenario")) if newest else []
    wanted = request.POST.get("scenario") or request.GET.get("scenario", "")
    chosen = next(
        (version for version in versions if version.scenario.key == wanted), versions[0] if versions else None
    )
    form = PatternForm(request.POST or None, project.pk)
    context: dict[str, Any] = {
        "suite": suite,
        "keys": [version.scenario.key for version in versions],
        "chosen": chosen.scenario.key if chosen else "",
        "trials": _trials(chosen),
        "tool": _tool(chosen, project.command_pattern),
        "given": request.POST,
    }
    if request.method == "POST":
        context |= _try_pattern(form)
    return page_or_fragment(request, "suites/suites/pattern.html", "suites/suites/_matches.html", context)


def _tool(version: ScenarioVersion | None, shared: str) -> Tool:
    """Return a scenario's tool with the pattern that a target without its own gives it."""
    tool = (version.spec.criteria.tool if version else None) or Tool()
    return tool if tool.command_pattern else tool.model_copy(update={"command_pattern": shared})


def _trials(version: ScenarioVersion | None) -> list[tuple[int, str]]:
    """Return the scenario's newest trials with a transcript, and their outcomes."""
    if version is None:
        return []
    rows = version.scenario.trials.filter(transcript__isnull=False).order_by("-pk")
    return list(rows.values_list("pk", "outcome")[:MOST_TRIALS])


def _try_pattern(form: PatternForm) -> dict[str, Any]:
    if not form.is_valid():
        return {"problem": form.sentence}
    tool = Tool(binary=form.cleaned_data["binary"], command_pattern=form.cleaned_data["pattern"])
    try:
        trial = try_pattern(form.transcript(), tool)
    except PatternError as error:
        return {"problem": str(error)}
    rows = [(each, redact_patterns(each.line), result_of(each)) for each in trial.commands[:MOST_SHOWN]]
    return {"matches": rows, "total": total_of(trial), "hidden": len(trial.commands) - len(rows)}
