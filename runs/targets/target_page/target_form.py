"""The form of a target: fields of its kind, or its entry as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from evaluators.model import Json
from runs.targets.providers.registry import ALIASES, OPTIONS
from runs.targets.target_fields import TargetField, dump, entry_of, fields_of, load, texts_of
from scenarios.formats.problems import Problem, ScenarioFileError

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
YES_NO = {"true": "yes", "false": "no"}


class TargetForm(forms.Form):
    """A target as YAML, its entry in a targets file."""

    definition = forms.CharField(
        max_length=100_000, strip=False, widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false"})
    )
    was = forms.CharField(required=False, widget=forms.HiddenInput)
    """Time of the last change when the page was rendered."""


class TargetFieldsForm(forms.Form):
    """A target as fields. `base` carries the entry that the fields start from."""

    name = forms.CharField(max_length=120, help_text="Runs and suites refer to it.")
    base = forms.CharField(required=False, strip=False, max_length=100_000, widget=forms.HiddenInput)
    was = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, kind: str, *args: Any, name: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.given_name = kind, name
        self.described = fields_of(kind)
        if name:
            del self.fields["name"]
        for target_field in self.described:
            self.fields[target_field.name] = _field(target_field)
        for field_name, field in self.fields.items():
            if not field.widget.is_hidden:
                field.widget.attrs["aria-describedby"] = f"{field_name}-note"

    @property
    def main(self) -> list[forms.BoundField]:
        return [self[each.name] for each in self.described if each.is_main]

    @property
    def further(self) -> list[forms.BoundField]:
        return [self[each.name] for each in self.described if not each.is_main]

    @property
    def opens_further(self) -> bool:
        """Return whether a field under *More* has a value or an error."""
        return any(field.value() or field.errors for field in self.further)

    def entry(self) -> dict[str, Json]:
        """Return the entry that the form describes. Requires a valid form."""
        values = self.cleaned_data
        try:
            base = load(values["base"])
        except ScenarioFileError:
            base = None
        name = self.given_name or values["name"]
        base = base if isinstance(base, dict) else {}
        return entry_of(values, self.described, name=name, kind=self.kind, base=base)

    def add_problems(self, problems: tuple[Problem, ...]) -> None:
        """Show problems at their fields, and others above the form."""
        for problem in problems:
            where = problem.where.removeprefix(f"{self.given_name or self.data.get('name', '')}.")
            first = where.replace("[", ".").split(".")[0]
            spelled = {
                name: target_field.name
                for target_field in self.described
                for name in _spellings(self.kind, target_field.name)
            }
            field = spelled.get(first.lower(), first)
            self.add_error(field if field in self.fields else None, f"{problem.what} {problem.fix}".strip())


def initial_of(entry: Mapping[str, Json], kind: str) -> dict[str, str]:
    """Return the initial values of an entry's form."""
    base = dump(entry) if entry else ""
    return {**texts_of(entry, fields_of(kind)), "name": str(entry.get("name", "")), "base": base}


def kind_of(entry: Mapping[str, Json]) -> str:
    """Return the kind of an entry's provider; empty for an unknown one."""
    written = str(entry.get("provider", "")).lower()
    kind = ALIASES.get(written, written)
    return kind if kind in OPTIONS else ""


def _spellings(kind: str, name: str) -> tuple[str, ...]:
    names = (name, *OPTIONS[kind].spellings()[name])
    return (*names, *(each.replace("_", "") for each in names))


def _field(field: TargetField) -> forms.CharField | forms.ChoiceField:
    label = LABELS.get(field.name, field.name.replace("_", " ").capitalize())
    hint = HINTS.get(field.name, f"Default: {str(field.default).removesuffix('.')}." if field.default else "")
    if field.choices:
        shown = [(value, YES_NO.get(value, value)) for value in field.choices]
        return forms.ChoiceField(
            label=label, required=False, help_text=hint, choices=[("", "default"), *shown]
        )
    rows = ROWS.get(field.name, 3 if field.widget in ("lines", "pairs", "yaml") else 0)
    attrs: dict[str, Any] = {"spellcheck": "false", **({"rows": rows} if rows else {})}
    widget = forms.Textarea(attrs=attrs) if rows else forms.TextInput(attrs=attrs)
    return forms.CharField(
        label=label, required=False, strip=not rows, max_length=20_000, help_text=hint, widget=widget
    )
