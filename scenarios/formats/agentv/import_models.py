"""The models of `imports` in an eval file of AgentV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BeforeValidator, Field

from evaluators.model import Json, Text
from scenarios.formats.validation import Mirror


def _as_list(value: Json) -> Json:
    """Return a single value as a list."""
    return [value] if isinstance(value, str | dict) else value


def _select(value: Json) -> Json:
    """Read a glob, or a list of them, as patterns of ids."""
    return {"test_ids": value} if isinstance(value, str | list) else value


def _imported(value: Json) -> Json:
    return {"path": value} if isinstance(value, str) else value


Globs = Annotated[list[Text], BeforeValidator(_as_list, json_schema_input_type=Text | list[Text])]


class SelectFile(Mirror):
    """Which cases of a file are imported."""

    test_ids: Globs = Field(default_factory=list, validation_alias=AliasChoices("test_ids", "testIds"))
    tags: Globs = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)


class ImportedFile(Mirror):
    """One entry of `imports.tests`."""

    unrunnable: ClassVar[Mapping[str, str]] = {"run": "Write 'threshold:' in its cases."}

    path: Text = Field(validation_alias=AliasChoices("path", "include"))
    select: (
        Annotated[SelectFile, BeforeValidator(_select, json_schema_input_type=Text | list[Text] | SelectFile)]
        | None
    ) = None


Imported = Annotated[ImportedFile, BeforeValidator(_imported, json_schema_input_type=Text | ImportedFile)]


class ImportsFile(Mirror):
    """`imports`: files whose cases are added."""

    unrunnable: ClassVar[Mapping[str, str]] = {
        "suites": "Remove it, and upload the files with this one: each is a suite of its own."
    }

    tests: Annotated[
        list[Imported], BeforeValidator(_as_list, json_schema_input_type=Text | ImportedFile | list[Imported])
    ] = Field(default_factory=list)
