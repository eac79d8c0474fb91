"""Views of one target, to create, edit and try it, and its two forms: fields for a new one, or YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.middleware import page_or_fragment
from evaluators.model import Json
from runs.engine.trial import LONGEST_OUTPUT, PROMPT, request_try
from runs.models import Target, TargetTry
from runs.sandbox.worker_settings import containment
from runs.targets import edits
from runs.targets.agents.program_lookup import HiddenFiles
from runs.targets.definitions import dump_yaml, read_target, refuse_saving
from runs.targets.edits import accepts_at_once
from runs.targets.entries import TargetDefinition, find_reference
from runs.targets.hidden_programs import hidden_from, missing_program, show_folders
from runs.targets.providers.options import Options
from runs.targets.providers.registry import OPTIONS
from runs.targets.target_page.views import find_shown_target
from scenarios.commands import Quoted, quote_lines
from scenarios.formats.parsed import Problem, ScenarioFileError
from scenarios.reading import read_yaml_document

KINDS = {
    "cli": "Your own agent: any command",
    "codex": "Codex",
    "claude_code": "Claude Code",
    "opencode": "OpenCode",
    "gemini_cli": "Gemini CLI",
    "qwen_code": "Qwen Code",
    "copilot_cli": "Copilot CLI",
    "litellm": "A model, such as an OpenAI-compatible one",
    "http": "An agent behind HTTP",
    "mock": "A fixed answer (mock)",
    "replay": "A recorded session (replay)",
}
"""Kinds that the page of a new target offers; the others are written as YAML."""
SAMPLES: Mapping[str, dict[str, Json]] = {
    "cli": {"command_template": "python3 my_agent.py {PROMPT}"},
    "litellm": {"model": "openai/gpt-5"},
    "http": {"url": "http://localhost:3000/chat"},
    "mock": {"response": "Done."},
}
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]*")
"""A variable's name in a field for a secret; with an underscore, which keys of services rarely have."""
MAIN: Mapping[str, tuple[str, ...]] = {
    "cli": ("command_template", "parser", "cwd", "read_folders", "healthcheck", "timeout_seconds"),
    "codex": ("model", "api_key", "base_url", "executable", "args", "env"),
    "claude_code": ("model", "api_key", "base_url", "executable", "args", "env"),
    "opencode": ("model", "api_key", "base_url", "executable", "args", "env"),
    **dict.fromkeys(
        ("gemini_cli", "qwen_code", "copilot_cli"),
        ("model", "api_key", "base_url", "executable", "args", "env"),
    ),
    "http": ("url", "api_key", "headers", "input_field", "output_field", "timeout_seconds"),
    "litellm": ("model", "base_url", "api_key", "temperature", "max_output_tokens"),
    "azure": ("resource_name", "deployment_name", "api_key", "version"),
    "anthropic": ("model", "api_key", "max_output_tokens", "thinking_budget"),
    "gemini": ("model", "api_key", "max_output_tokens"),
    "mock": ("response", "delay_ms", "exit_code", "trace"),
    "replay": ("path", "parser", "response", "exit_code"),
}
"""Fields that a kind's form shows first, by default its own; the others are under *More*."""
LABELS = {
    "command_template": "Command",
    "cwd": "Working folder",
    "read_folders": "Folders it may read",
    "api_key": "Variable with the API key",
    "base_url": "Address of the model service",
    "url": "Address",
    "env": "Variables",
    "args": "Arguments",
    "timeout_seconds": "Time limit, seconds",
    "workers": "Trials at once",
    "labels": "Worker labels",
    "judge_target": "Judge",
    "healthcheck": "Health check",
    "egress": "Network",
    "max_memory_mb": "Memory, MB",
    "delay_ms": "Delay, ms",
    "path": "Recording",
    "parser": "Format of the output",
}
HINTS = {
    "command_template": "{PROMPT} becomes the task as one quoted word. Also: {WORKSPACE} (the trial's folder), "
    "{PROMPT_FILE}, {EVENTS_FILE}, {OUTPUT_FILE}, {MODEL}, {FILES}.",
    "cwd": "Default: the trial's workspace. A folder outside it is read-only in the sandbox.",
    "read_folders": "One a line: folders of the worker, read-only in the sandbox, such as your agent's own.",
    "api_key": "Its name, such as OPENAI_API_KEY. Set it on the worker and allow it in EVALHUB_ENV_ALLOW.",
    "base_url": "Such as http://localhost:8000/v1. Default: the provider's own.",
    "env": "One NAME=VALUE a line. Secrets as NAME=${{ VARIABLE }}.",
    "headers": "One NAME=VALUE a line. Secrets as NAME=${{ VARIABLE }}.",
    "args": "One a line.",
    "labels": "One a line; a worker needs all of them.",
    "workers": "Over all runs. Default: no limit.",
    "healthcheck": "YAML, such as {type: command, command_template: my-agent --version}.",
    "model": "Default: the program's own.",
    "executable": "A name on PATH, or a path on the worker.",
    "path": "A file, or a YAML mapping from scenario names to files.",
    "egress": "What the agent may reach. Default: what the worker allows.",
}
ROWS = {"command_template": 3, "response": 4}


class TargetForm(forms.Form):
    """A target as YAML, its entry in a targets file."""

    definition = forms.CharField(
        max_length=100_000, strip=False, widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false"})
    )
    was = forms.CharField(required=False, widget=forms.HiddenInput)
    """Time of the last change when the page was rendered."""

    def text(self) -> str:
        """Return the entry as YAML. Requires a valid form."""
        return str(self.cleaned_data["definition"])


class TargetFieldsForm(forms.Form):
    """A new target of one kind as fields."""

    name = forms.CharField(max_length=120, help_text="Runs and suites refer to it.")

    def __init__(self, kind: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind, options = kind, OPTIONS[kind]
        own = tuple(name for name in options.model_fields if name not in Options.model_fields)
        self.main_names = MAIN.get(kind, own)
        for name in (*self.main_names, *options.model_fields):
            if name in self.main_names or name not in options.unused_fields:
                self.fields[name] = _field(options, name)
        for name, shown in self.fields.items():
            shown.widget.attrs["aria-describedby"] = f"{name}-note"

    @property
    def main(self) -> list[forms.BoundField]:
        return [self[name] for name in self.main_names]

    @property
    def further(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in ("name", *self.main_names)]

    @property
    def opens_further(self) -> bool:
        """Return whether a field under *More* has a value or an error."""
        return any(field.value() or field.errors for field in self.further)

    def text(self) -> str:
        """Return the entry that the form describes as YAML. Requires a valid form."""
        given = {name: text for name, text in self.cleaned_data.items() if name != "name" and text.strip()}
        values = {name: _value(OPTIONS[self.kind], name, text) for name, text in given.items()}
        return dump_yaml({"name": self.cleaned_data["name"], "provider": self.kind, **values})

    def add_problems(self, problems: Sequence[Problem]) -> None:
        """Show problems at their fields, and others above the form."""
        for problem in problems:
            where = problem.where.removeprefix(f"{self.cleaned_data['name']}.")
            first = where.replace("[", ".").split(".")[0]
            field = first if first in self.fields else None
            self.add_error(field, f"{problem.what} {problem.fix}".strip())


def _field(options: type[Options], name: str) -> forms.CharField | forms.ChoiceField:
    info = options.model_fields[name]
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    shown = f"Default: {str(default).removesuffix('.')}." if default else ""
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    hint = HINTS.get(name, shown)
    widget, choices = _widget(info.annotation)
    if choices:
        return forms.ChoiceField(
            label=label, required=False, help_text=hint, choices=[("", "default"), *choices]
        )
    rows = ROWS.get(name, 3 if widget in ("lines", "pairs", "structure") else 0)
    attrs: dict[str, Any] = {"spellcheck": "false", **({"rows": rows} if rows else {})}
    area = forms.Textarea(attrs=attrs) if rows else forms.TextInput(attrs=attrs)
    return forms.CharField(
        label=label, required=False, strip=not rows, max_length=20_000, help_text=hint, widget=area
    )


def _widget(annotation: Any) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return how values of a type are written, and the choices: in lines, as NAME=VALUE, as text or as YAML."""
    if hasattr(annotation, "__metadata__"):
        return _widget(annotation.__origin__)
    origin, parts = get_origin(annotation), get_args(annotation)
    if NoneType in parts:
        kinds = [each for each in parts if each is not NoneType]
        return _widget(kinds[0]) if len(kinds) == 1 else ("structure", ())
    if origin is Literal:
        return "text", [(str(each), str(each)) for each in parts]
    if origin is tuple and _widget(parts[0])[0] == "text":
        return "lines", ()
    if origin is dict and parts[1] is str:
        return "pairs", ()
    if annotation is bool:
        return "yaml", (("true", "yes"), ("false", "no"))
    return {str: "text", int: "yaml", float: "yaml"}.get(annotation, "structure"), ()


def _value(options: type[Options], name: str, text: str) -> Json:
    """Return a text's value; what can't be read stays a text, which validation refuses at its field."""
    text = text.replace("\r\n", "\n")
    if name in options.secret_fields and _VARIABLE.fullmatch(text.strip()):
        return f"${{{{ {text.strip()} }}}}"
    if find_reference(text):
        return text.strip()
    widget, _ = _widget(options.model_fields[name].annotation)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if widget == "lines":
        return lines
    if widget == "pairs":
        pairs = [line.partition("=") for line in lines]
        is_read = all(sign and key.strip() for key, sign, _ in pairs)
        return {key.strip(): value.strip() for key, _, value in pairs} if is_read else text
    if widget == "text":
        return text
    try:
        return read_yaml_document("target", text.encode()).value
    except ScenarioFileError:
        return text


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
        return editor.render() if entry is None else editor.show(dump_yaml(entry))
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
