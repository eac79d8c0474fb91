"""What an MCP server shows to agents, its instructions and tools, and whether arguments fit a tool's schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from evaluators.model import Json
from evaluators.tool_use.exposure import estimated_tokens


class McpTool(Struct, frozen=True, omit_defaults=True):
    """One tool of `tools/list`."""

    name: str
    description: str = ""
    schema: dict[str, Json] = {}
    """Its `inputSchema`."""
    output_schema: dict[str, Json] | None = None
    """Its `outputSchema`; None without one. Models don't read it, so it isn't stored with surfaces."""

    @property
    def tokens(self) -> int:
        """An estimate from the number of characters, as compact JSON."""
        return estimated_tokens(msgspec.json.encode(_as_read(self)).decode())

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
        mcp_tool = self.tool(tool)
        return mcp_tool.schema if mcp_tool else None

    def tool(self, name: str) -> McpTool | None:
        """Return a tool by its name."""
        return next((each for each in self.tools if each.name == name), None)

    @property
    def documents(self) -> dict[str, str]:
        """Return instructions and tools as texts by name."""
        texts = {f"{self.server}: instructions": self.instructions} if self.instructions else {}
        return texts | {f"{self.server}: {each.name}": each.text for each in self.tools}

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


def _tool(entry: Mapping[str, Json]) -> McpTool:
    schema, output = entry.get("inputSchema"), entry.get("outputSchema")
    return McpTool(
        str(entry["name"]),
        str(entry.get("description") or ""),
        schema if isinstance(schema, dict) else {},
        output if isinstance(output, dict) else None,
    )


def join_surfaces(surfaces: Iterable[McpSurface]) -> McpSurface | None:
    """Return all tools of several listings of a server, each as it was listed last; None without a listing."""
    surface: McpSurface | None = None
    tools: dict[str, McpTool] = {}
    for surface in surfaces:
        tools |= {each.name: each for each in surface.tools}
    return surface and msgspec.structs.replace(surface, tools=tuple(tools[name] for name in sorted(tools)))


def encode_surfaces(surfaces: Sequence[McpSurface]) -> str:
    """Return surfaces as stored: surfaces that read the same are equal texts."""
    read = [msgspec.structs.replace(each, tools=tuple(map(_as_read, each.tools))) for each in surfaces]
    return msgspec.json.encode(read, order="deterministic").decode()


def _as_read(tool: McpTool) -> McpTool:
    """Return a tool without what models don't read."""
    return msgspec.structs.replace(tool, output_schema=None)


def decode_surfaces(text: str) -> tuple[McpSurface, ...]:
    """Return the surfaces in a text of `encoded`."""
    return msgspec.json.decode(text, type=tuple[McpSurface, ...])
