"""Read descriptions that take the place of an MCP server's own, so that descriptions alone can be compared."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from evaluators.model import Json
from scenarios.formats.parsed import Mirror, Problem, ScenarioFileError, validate
from scenarios.reading import read_yaml_document


def _text_alone(value: Json) -> Json:
    return {"description": value} if isinstance(value, str) else value


class ToolDescription(Mirror):
    """The texts of one tool; None keeps the server's."""

    description: str | None = None
    arguments: dict[str, str] = Field(default_factory=dict)
    """Descriptions by argument."""


class ToolDescriptions(Mirror):
    """The texts of a server."""

    instructions: str | None = None
    tools: dict[
        str,
        Annotated[
            ToolDescription, BeforeValidator(_text_alone, json_schema_input_type=str | ToolDescription)
        ],
    ] = Field(default_factory=dict)


def read_descriptions(content: bytes, file: str) -> ToolDescriptions:
    """Return the descriptions in a YAML or JSON file. Raises `ScenarioFileError` with every error and its line."""
    document = read_yaml_document(file, content)
    descriptions, problems = validate(ToolDescriptions, document.value, document)
    if descriptions is None or problems:
        empty = Problem(file, 1, "", "The file is empty.", "Write 'tools'.", "tool-descriptions/empty")
        raise ScenarioFileError(problems or [empty])
    return descriptions
