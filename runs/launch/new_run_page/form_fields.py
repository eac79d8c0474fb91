"""The fields of the form of a new run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from django import forms
from pydantic_core import PydanticCustomError

from evalhub.web.rest.request_body import validate_json
from evaluators.model import Json
from runs.launch.new_run_page.named_choices import NamedChoice
from runs.launch.run_request import AskedField
from scenarios.bundle_limits import MAX_FILE_BYTES
from scenarios.formats.problems import ScenarioFileError
from scenarios.tool_descriptions import ToolDescriptions, read_descriptions

NUMBER = {
    "invalid": "Enter a whole number, such as 3.",
    "min_value": "Enter %(limit_value)s or more.",
    "max_value": "Enter %(limit_value)s or less.",
}
LEAST = 0.0001
"""The least of a number that must be more than 0."""


def unique_names(values: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the unique names of a field: known ones as they are, typed ones split at commas."""
    names = (
        name
        for value in values
        for name in ([value] if value in known else map(str.strip, value.split(",")))
        if name
    )
    return list(dict.fromkeys(names))


class NamesInput(forms.Widget):
    """Every value of a name: of its checkboxes, and of a field for names that the list lacks."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return list(data.getlist(name))


class NamesField(forms.Field):
    """Names that are chosen from a list, or typed."""

    def __init__(self, **more: Any) -> None:
        super().__init__(required=False, widget=NamesInput, **more)
        self.known: list[NamedChoice] = []

    def names(self, values: Iterable[str]) -> list[str]:
        """Return the chosen names."""
        return unique_names(values, {each.name for each in self.known})

    def clean(self, value: list[str]) -> list[str]:
        return self.names(value)

    def offered(self, values: Iterable[str]) -> list[NamedChoice]:
        """Return the list's choices, with names that were typed at its end."""
        known = {each.name for each in self.known}
        return [*self.known, *(NamedChoice(name) for name in self.names(values) if name not in known)]


class JsonField(forms.CharField):
    """JSON that is typed in; None if it is empty."""

    def __init__(self, **more: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
        super().__init__(required=False, max_length=MAX_FILE_BYTES, widget=widget, **more)

    def clean(self, value: Any) -> Json:
        text = super().clean(value)
        if not text:
            return None
        try:
            return validate_json(json.loads(text))
        except PydanticCustomError as error:
            raise forms.ValidationError(error.message()) from error
        except (ValueError, RecursionError) as error:
            place = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise forms.ValidationError(f"This is not JSON{place}. Correct it or leave it empty.") from error


class DescriptionsField(forms.CharField):
    """Descriptions for an MCP server's tools, as a file has them; None if it is empty."""

    def __init__(self, **more: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
        super().__init__(required=False, strip=False, max_length=MAX_FILE_BYTES, widget=widget, **more)

    def clean(self, value: Any) -> ToolDescriptions | None:
        text = super().clean(value)
        try:
            return read_descriptions(text.encode(), "") if text.strip() else None
        except ScenarioFileError as error:
            raise forms.ValidationError(
                [f"Line {each.line}: {each.what} {each.fix}" for each in error.problems]
            ) from error


def form_field(field: AskedField) -> forms.Field:
    """Return the form's field for one of `RunRequest`."""
    asked = field.asked
    shared: dict[str, Any] = {"label": asked.label or None, "help_text": asked.hint}
    if field.kind is bool:
        return forms.BooleanField(required=False, initial=field.default, **shared)
    if field.kind is list:
        return NamesField(**shared)
    if field.kind is str:
        return forms.CharField(required=False, max_length=field.longest, **shared)
    shared |= {
        "min_value": LEAST if field.above == 0 else field.least,
        "max_value": field.most,
        "required": field.default is not None,
        "initial": field.default,
    }
    if field.kind is int:
        return forms.IntegerField(error_messages=NUMBER, **shared)
    return forms.FloatField(error_messages={**NUMBER, "invalid": f"Enter {asked.example}."}, **shared)
