"""Views of one target: create it, edit it and try it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import page_or_fragment
from evaluators.model import Json
from runs.engine.trying import LONGEST_OUTPUT, PROMPT, request_try
from runs.models import Target, TargetTry
from runs.sandbox.worker_settings import containment
from runs.targets import edits
from runs.targets.agents.program_lookup import HiddenFiles
from runs.targets.definitions import dump, read_target
from runs.targets.edits import accepts_at_once
from runs.targets.entries import TargetDefinition
from runs.targets.hidden_programs import hidden_from, missing_program, show_folders
from runs.targets.paths import refuse_saving
from runs.targets.providers.registry import OPTIONS
from runs.targets.target_page.target_form import KINDS, SAMPLES, TargetFieldsForm, TargetForm
from runs.targets.target_page.views import find_shown_target
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.quoting import Quoted, quote_lines


@dataclass
class TargetEditor:
    """The editor of a target: its YAML, or the form of a new one, and the result of a try."""

    request: ProjectRequest
    target: Target | None
    form: TargetForm | TargetFieldsForm
    prompt: str = PROMPT
    problems: list[Quoted] = field(default_factory=list)
    tried: TargetTry | None = None
    hidden: HiddenFiles = field(default_factory=HiddenFiles)
    """What keeps the submitted definition from starting."""
    missing: str = ""
    """Its program, if this machine has none of that name and workers are here."""

    @property
    def was(self) -> str:
        return self.target.changed.isoformat() if self.target else ""

    @property
    def file(self) -> str:
        """The file that problems name."""
        return self.target.name if self.target else edits.NEW

    @property
    def base(self) -> str:
        return self.target.base_folder if self.target else ""

    def show(self, text: str) -> HttpResponse:
        """Return the page with a definition's YAML."""
        self.form = TargetForm(initial={"definition": text, "was": self.was})
        return self.render()

    def read(self) -> TargetDefinition | None:
        """Return the submitted definition; none if it has problems, which the form shows then."""
        self.prompt = self.request.POST.get("prompt", "").strip()[:LONGEST_OUTPUT] or PROMPT
        if not self.form.is_valid():
            return None
        try:
            definition = read_target(self.form.text().encode(), self.file)
            refuse_saving(definition, containment().targets, file=self.file, base=self.base)
        except ScenarioFileError as error:
            self.show_problems(error.problems)
            return None
        return definition

    def show_problems(self, problems: Sequence[Problem]) -> None:
        """Show problems at the form's fields, or with lines of the YAML."""
        if isinstance(self.form, TargetFieldsForm):
            self.form.add_problems(problems)
        else:
            self.problems = quote_lines(problems, {self.file: self.form.text().encode()})

    def cannot_start(self, definition: TargetDefinition) -> bool:
        """Return whether the definition can't start, as far as files of this machine show; the page says why."""
        self.hidden = hidden_from(definition, base=self.base)
        self.missing = missing_program(definition)
        return bool(self.hidden.files or self.missing)

    def refuse_crossed(self) -> bool:
        """Return whether somebody else changed the target meanwhile; the form says so once."""
        if self.target is None or self.form.cleaned_data["was"] in ("", self.was):
            return False
        who = self.target.changed_by.get_username() if self.target.changed_by else "Somebody"
        sentence = f"{who} changed this target in the meantime. Save again to overwrite that change."
        self.form.add_error("definition", sentence)
        self.form.data = {**self.request.POST.dict(), "was": self.was}
        return True

    def save(self, text: str) -> bool:
        """Store the definition; return False with its problems in the form."""
        by, target = self.request.user, self.target
        try:
            if target is not None:
                edits.rewrite(target, text, by=by)
                messages.success(self.request, f"Saved {target.name}. New runs use this version.")
            else:
                accepted = accepts_at_once(self.request.access)
                target = edits.add_target(self.request.access.project, text, by=by, accepted=accepted)
                what = "New runs can use it" if accepted else "An admin needs to accept it"
                messages.success(self.request, f"Added {target.name}. {what}.")
        except ScenarioFileError as error:
            self.show_problems(error.problems)
            return False
        return True

    def render(self, status: int = 200) -> HttpResponse:
        """Return the page, or its form for htmx."""
        context = vars(self) | {
            "is_yaml": isinstance(self.form, TargetForm),
            "kinds": KINDS,
            "may_try": accepts_at_once(self.request.access),
            **_try_context(self.tried),
        }
        page, part = "targets/targets/target_edit.html", "targets/targets/_target_form.html"
        return page_or_fragment(self.request, page, part, context, status=status)


def _try_context(row: TargetTry | None) -> dict[str, Any]:
    return {"tried": row, "is_waiting": row is not None and row.is_waiting(now=timezone.now())}


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("upload")
def target_new(request: ProjectRequest) -> HttpResponse:
    """Choose a provider, then fill in its form, which writes the YAML; or write that."""
    kind = request.POST.get("kind") or request.GET.get("provider", "")
    if kind in OPTIONS:
        initial = SAMPLES.get(kind)
        form = TargetFieldsForm(kind, request.POST or None, initial=initial)
        return _show_edited(request, TargetEditor(request, None, form))
    if request.method == "POST" or request.GET.keys() & {"view", "try"}:
        editor = TargetEditor(request, None, TargetForm(request.POST or None))
        return _show_edited(request, editor, {"name": "", "provider": "cli", **SAMPLES["cli"]})
    return render(request, "targets/targets/target_new.html", {"kinds": KINDS})


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("manage")
def target_edit(request: ProjectRequest, pk: int) -> HttpResponse:
    """Edit a target as its entry in a targets file."""
    target = find_shown_target(request, pk)
    editor = TargetEditor(request, target, TargetForm(request.POST))
    return _show_edited(request, editor, target.definition)


def _show_edited(
    request: ProjectRequest, editor: TargetEditor, entry: dict[str, Json] | None = None
) -> HttpResponse:
    """Answer with the editor; with `entry` as YAML until something is submitted."""
    if request.method != "POST":
        if (key := request.GET.get("try", "")).isdecimal():
            editor.tried = get_object_or_404(TargetTry, project=request.access.project, pk=int(key))
            entry, editor.prompt = editor.tried.definition, editor.tried.prompt
        return editor.render() if entry is None else editor.show(dump(entry))
    definition = editor.read()
    if definition is None:
        return editor.render(422)
    text = editor.form.text()
    if "show" in request.POST:
        return editor.show(text)
    if "try" in request.POST:
        # Request a try of the definition. Raises `PermissionDenied`.
        access, by = editor.request.access, editor.request.user
        if not accepts_at_once(access):
            raise PermissionDenied("Only admins can try a target that isn't saved and accepted.")
        editor.tried = request_try(access.project, definition, editor.prompt, by=by, base_folder=editor.base)
        return editor.render() if request.htmx else redirect(f"{request.path}?try={editor.tried.pk}#try")
    wanted = request.POST.get("save", "")
    if wanted != "anyway" and editor.cannot_start(definition):
        if wanted != "show-folders" or not editor.hidden.folders:
            return editor.render(422)
        text = show_folders(text, editor.hidden.folders)
    if editor.refuse_crossed() or not editor.save(text):
        return editor.render(422)
    return redirect("target-list", request.access.project.slug)


@require_safe
@project_page("upload")
def target_try(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show the result of a try; htmx polls until it arrives."""
    row = get_object_or_404(TargetTry, project=request.access.project, pk=pk)
    return render(request, "targets/targets/_try.html", _try_context(row))
