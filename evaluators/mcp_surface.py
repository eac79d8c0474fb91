"""What an MCP server shows to agents, its instructions and tools, and whether arguments fit a tool's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from evaluators.exposure import estimated_tokens
from evaluators.model import Json


class McpTool(Struct, frozen=True, omit_defaults=True):
    """One tool of `tools/list`."""

    name: str
    description: str = ""
    schema: dict[str, Json] = {}
    """Its `inputSchema`."""

    @property
    def tokens(self) -> int:
        """An estimate from the number of characters, as compact JSON."""
        return estimated_tokens(msgspec.json.encode(self).decode())

    @property
    def text(self) -> str:
        """Return description and schema as text for people."""
        return (
            f"{self.description}\n\n{json.dumps(self.schema, indent=2, ensure_ascii=False, sort_keys=True)}\n"
        )


class McpSurface(Struct, frozen=True, omit_defaults=True):
    """Everything of a server that an agent's model reads before its first call."""

    server: str
    version: str = ""
    """The server's own."""
    instructions: str = ""
    tools: tuple[McpTool, ...] = ()

    def schema(self, tool: str) -> dict[str, Json] | None:
        """Return the schema of a tool's arguments; None if there is no such tool."""
        return next((each.schema for each in self.tools if each.name == tool), None)

    @property
    def documents(self) -> dict[str, str]:
        """Return instructions and tools as texts by name."""
        own = {f"{self.server}: instructions": self.instructions} if self.instructions else {}
        return own | {f"{self.server}: {each.name}": each.text for each in self.tools}

    @property
    def tokens(self) -> int:
        """The tokens of tools and instructions."""
        instructions = estimated_tokens(self.instructions) if self.instructions else 0
        return instructions + sum(each.tokens for each in self.tools)


def surface_of(server: str, answer: Mapping[str, Json]) -> McpSurface:
    """Return the surface in a listing: `tools`, `instructions` and `serverInfo` as MCP names them."""
    about = answer.get("serverInfo")
    tools = [each for each in answer.get("tools") or () if isinstance(each, dict) and each.get("name")]
    return McpSurface(
        server,
        str((about if isinstance(about, dict) else {}).get("version") or ""),
        str(answer.get("instructions") or ""),
        tuple(sorted(map(_tool, tools), key=lambda tool: tool.name)),
    )


def _tool(each: Mapping[str, Json]) -> McpTool:
    schema = each.get("inputSchema")
    return McpTool(
        str(each["name"]), str(each.get("description") or ""), schema if isinstance(schema, dict) else {}
    )


def encoded(surfaces: Sequence[McpSurface]) -> str:
    """Return surfaces as stored: equal surfaces are equal texts."""
    return msgspec.json.encode(surfaces, order="deterministic").decode()


def decoded(text: str) -> tuple[McpSurface, ...]:
    """Return the surfaces in a text of `encoded`."""
    return msgspec.json.decode(text, type=tuple[McpSurface, ...])
