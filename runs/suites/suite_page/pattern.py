"""Try a command pattern on a transcript: what it finds, with subcommand and exit code."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods

from evalhub.lib.limits import LONGEST_TRANSCRIPT
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.forms import SentenceForm
from evalhub.web.fragments import page_or_fragment
from evaluators.model import Transcript
from evaluators.patterns import LONGEST, PatternError
from evaluators.redaction import redact_patterns
from evaluators.tool_use.interaction import result_of, total_of, try_pattern
from evaluators.tool_use.tool import Tool
from runs.models import TranscriptRecord
from scenarios.models import ScenarioVersion, Suite

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
