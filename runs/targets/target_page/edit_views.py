"""Views of one target: create it, edit it and try it."""

from __future__ import annotations

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
from runs.targets.definitions import read_target
from runs.targets.edits import accepts_at_once
from runs.targets.hidden_programs import hidden_from, missing_program, show_folders
from runs.targets.paths import refuse_saving
from runs.targets.providers.registry import OPTIONS
from runs.targets.target_fields import dump, load
from runs.targets.target_page.target_form import (
    KINDS,
    SAMPLES,
    TargetFieldsForm,
    TargetForm,
    initial_of,
    kind_of,
)
from runs.targets.target_page.views import find_shown_target
from scenarios.formats.problems import ScenarioFileError
from scenarios.quoting import Quoted, quote_lines


@dataclass
class TargetEditor:
    """The editor of a target: its form or its YAML, and the result of a try."""

    request: ProjectRequest
    target: Target | None
    kind: str = ""
    """Empty where the YAML names no known provider."""
    form: TargetForm | TargetFieldsForm = field(default_factory=TargetForm)
    prompt: str = PROMPT
    problems: list[Quoted] = field(default_factory=list)
    tried: TargetTry | None = None
    hidden: HiddenFiles = field(default_factory=HiddenFiles)
    """What keeps the saved or submitted definition from starting."""
    missing: str = ""
    """Its program, if this machine has none of that name and workers are here."""

    @property
    def is_yaml(self) -> bool:
        return isinstance(self.form, TargetForm)

    @property
    def was(self) -> str:
        return self.target.changed.isoformat() if self.target else ""

    def show(self, entry: dict[str, Json], *, as_yaml: bool) -> None:
        """Fill the form, or the YAML if asked for or if the provider is unknown."""
        self.kind = kind_of(entry)
        if as_yaml or not self.kind:
            self.form = TargetForm(initial={"definition": dump(entry), "was": self.was})
        else:
            initial = {**initial_of(entry, self.kind), "was": self.was}
            self.form = TargetFieldsForm(
                self.kind, initial=initial, name=self.target.name if self.target else ""
            )

    def read(self) -> str:
        """Return the submitted definition as YAML; empty if it has problems, which the form shows then."""
        posted = self.request.POST
        self.prompt = posted.get("prompt", "").strip()[:LONGEST_OUTPUT] or PROMPT
        if posted.get("view") == "form":
            return self._read_fields(posted.get("kind", ""))
        self.form = TargetForm(posted)
        if not self.form.is_valid():
            return ""
        text: str = self.form.cleaned_data["definition"]
        try:
            self.kind = self._check(text)
        except ScenarioFileError as error:
            self.problems = quote_lines(error.problems, {error.problems[0].file: text.encode()})
            return ""
        return text

    def _read_fields(self, kind: str) -> str:
        self.kind = kind if kind in OPTIONS else "cli"
        name = self.target.name if self.target else ""
        self.form = form = TargetFieldsForm(self.kind, self.request.POST, name=name)
        if not form.is_valid():
            return ""
        text = dump(form.entry())
        try:
            self._check(text)
        except ScenarioFileError as error:
            form.add_problems(error.problems)
            return ""
        return text

    def _check(self, text: str) -> str:
        """Return the definition's kind. Raises `ScenarioFileError`."""
        file = self.target.name if self.target else edits.NEW
        definition = read_target(text.encode(), file)
        base = self.target.base_folder if self.target else ""
        refuse_saving(definition, containment().targets, file=file, base=base)
        return definition.kind

    def cannot_start(self, text: str) -> bool:
        """Return whether the definition can't start, as far as files of this machine show; the page says why."""
        definition = read_target(text.encode(), self.target.name if self.target else edits.NEW)
        base = self.target.base_folder if self.target else ""
        self.hidden = hidden_from(definition, base=base)
        self.missing = missing_program(definition)
        return bool(self.hidden.files or self.missing)

    def refuse_crossed(self) -> bool:
        """Return whether somebody else changed the target meanwhile; the form says so once."""
        if self.target is None or self.form.cleaned_data["was"] in ("", self.was):
            return False
        who = self.target.changed_by.get_username() if self.target.changed_by else "Somebody"
        sentence = f"{who} changed this target in the meantime. Save again to overwrite that change."
        self.form.add_error("definition" if self.is_yaml else None, sentence)
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
            if isinstance(self.form, TargetFieldsForm):
                self.form.add_problems(error.problems)
            else:
                self.problems = quote_lines(error.problems, {error.problems[0].file: text.encode()})
            return False
        return True

    def try_it(self, text: str) -> None:
        """Request a try of the definition. Raises `PermissionDenied`."""
        access = self.request.access
        if not accepts_at_once(access):
            raise PermissionDenied("Only admins can try a target that isn't saved and accepted.")
        definition = read_target(text.encode(), edits.NEW)
        base = self.target.base_folder if self.target else ""
        by = self.request.user
        self.tried = request_try(access.project, definition, self.prompt, by=by, base_folder=base)

    def render(self, status: int = 200) -> HttpResponse:
        """Return the page, or its form for htmx."""
        context = {
            "target": self.target,
            "form": self.form,
            "kind": self.kind,
            "kind_title": KINDS.get(self.kind, self.kind),
            "is_yaml": self.is_yaml,
            "problems": self.problems,
            "prompt": self.prompt,
            "hidden": self.hidden,
            "missing": self.missing,
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
    """Choose a provider, then fill in its form."""
    kind = kind_of({"provider": request.GET.get("provider", "")})
    if request.method != "POST" and "try" not in request.GET and not kind and "view" not in request.GET:
        return render(request, "targets/targets/target_new.html", {"kinds": KINDS})
    entry = {"name": "", "provider": kind or "cli", **SAMPLES.get(kind, {})}
    return _show_edited(request, TargetEditor(request, None), entry)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("manage")
def target_edit(request: ProjectRequest, pk: int) -> HttpResponse:
    """Edit a target as a form or as its entry in a targets file."""
    target = find_shown_target(request, pk)
    return _show_edited(request, TargetEditor(request, target), target.definition)


def _show_edited(request: ProjectRequest, editor: TargetEditor, entry: dict[str, Json]) -> HttpResponse:
    if request.method != "POST":
        if (key := request.GET.get("try", "")).isdecimal():
            editor.tried = get_object_or_404(TargetTry, project=request.access.project, pk=int(key))
            entry, editor.prompt = editor.tried.definition, editor.tried.prompt
        editor.show(entry, as_yaml=request.GET.get("view") == "yaml")
        return editor.render()
    text = editor.read()
    if not text:
        return editor.render(422)
    if wanted := request.POST.get("show"):
        editor.show(load(text), as_yaml=wanted == "yaml")
        return editor.render()
    if "try" in request.POST:
        editor.try_it(text)
        if request.htmx or editor.tried is None:
            return editor.render()
        view = "&view=yaml" if editor.is_yaml else ""
        return redirect(f"{request.path}?try={editor.tried.pk}{view}#try")
    wanted = request.POST.get("save", "")
    if wanted != "anyway" and editor.cannot_start(text):
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
