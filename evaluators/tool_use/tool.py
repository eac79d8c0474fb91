"""The tool under test: how to find its commands, run it and check it."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticKnownError

from evaluators.model import AS_TUPLE, FROM_FILE, Json, StrictModel, Text


def _scalars_as_text(value: Json) -> Json:
    """Convert environment values such as `PORT: 8080` and `DEBUG: true` to text."""
    if not isinstance(value, dict):
        return value
    return {key: _scalar_as_text(item) for key, item in value.items()}


def _scalar_as_text(value: Json) -> Json:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


SERVER_NAME = r"[a-z0-9][a-z0-9-]{0,39}"
"""Part of the names of an MCP server's tools, in which agents change other characters."""
SERVER_URL = r"https?://[^\s/]\S*"
Environment = Annotated[
    dict[str, str],
    BeforeValidator(_scalars_as_text, json_schema_input_type=dict[str, str | int | float | bool]),
]
TRANSPORTS = ("", "http")
"""How a server at an address is spoken to: Streamable HTTP, written or not."""


def _known_transport(name: str, info: ValidationInfo) -> str:
    if info.context == FROM_FILE and name not in TRANSPORTS:
        raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, TRANSPORTS))})
    return name


class McpServer(StrictModel):
    """An MCP server as the tool under test (`target.mcp`), by its command or its address."""

    name: str
    """The server's name as agents see it: lower-case letters, digits and hyphens."""
    command: str = ""
    """Starts the server in the workspace; or give `url`."""
    url: str = ""
    """The address of a server that runs elsewhere; or give `command`."""
    headers: Environment = Field(default_factory=dict)
    """Headers of requests to `url`; secrets as `${{ NAME }}`."""
    transport: Annotated[
        str, AfterValidator(_known_transport), Field(json_schema_extra={"enum": list(TRANSPORTS)})
    ] = ""
    """How a server at `url` is spoken to: `http`, or nothing for the same."""
    help_tools: Annotated[tuple[Text, ...], AS_TUPLE] = ()
    """Tools of the server whose calls count as help, such as a search of its documentation."""

    @model_validator(mode="after")
    def _can_be_reached(self, info: ValidationInfo) -> Self:
        if info.context != FROM_FILE:
            return self
        if not re.fullmatch(SERVER_NAME, self.name):
            raise ValueError("The server's `name` has up to 40 lower-case letters, digits and hyphens")
        if self.url and not re.fullmatch(SERVER_URL, self.url):
            raise ValueError("The server's `url` begins with http:// or https://")
        if bool(self.command.strip()) == bool(self.url):
            raise ValueError("An MCP server needs a `command` or a `url`, and not both")
        if self.command.strip() and (self.headers or self.transport):
            raise ValueError("`headers` and `transport` belong to a server with a `url`")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or re.search(r"[\r\n\0]", value):
                raise ValueError(f"'{name}' can't be a header: names are words, and values have one line")
        return self


class Tool(StrictModel):
    """The tool under test: `target:` of a scenario and `[target]` of the settings."""

    binary: str = ""
    """The program's name, which starts its commands if there is no pattern."""
    command_pattern: str = ""
    """A regular expression for the tool's commands; a group named `sub`, else the last group, is the subcommand."""
    env: Environment = Field(default_factory=dict)
    """Variables for setup, agent, gates and scripts; `${NAME}` is one of the worker's."""
    health_check: str = ""
    """Must exit with 0 before a run starts."""
    version_command: str = ""
    """Prints the tool's version before a run."""
    files: Annotated[tuple[Text, ...], AS_TUPLE] = ()
    """Patterns of fixture files that are the tool, beside the binary."""
    mcp: McpServer | None = None
    """An MCP server in place of a program; its tools are the subcommands."""

    @property
    def title(self) -> str:
        """Return what messages call it."""
        return self.mcp.name if self.mcp else self.binary or "the tool"
