"""What an MCP server under test shows, and what the proxy recorded of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.storable_text import make_storable
from evaluators.model import Json, Transcript
from evaluators.tool_use.mcp_calls import mark_calls, refused_calls
from evaluators.tool_use.mcp_record import (
    McpSurface,
    encode_surfaces,
    find_listings,
    join_surfaces,
    read_mcp_record,
    surface_of,
)
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.nesting import without_deep_values
from runs.engine.context import RunContext
from runs.engine.mcp import mcp_messages
from runs.engine.mcp.mcp_messages import LONGEST_LISTING
from runs.engine.task import Task
from runs.errors import RequestError
from runs.models import ToolHelp
from runs.models.usage import MCP
from runs.targets.providers.base import Recording
from scenarios.formats.parsed import did_you_mean
from scenarios.storing import blob_hash
from scenarios.tool_descriptions import ToolDescriptions

RECORD = "mcp"
"""The artifact with the proxy's record."""


def mark_tested_calls(transcript: Transcript, task: Task, recording: Recording) -> Transcript:
    """Return the transcript with the calls of the MCP server under test marked; unchanged for another tool."""
    tool = task.spec.criteria.tool
    if tool is None or tool.mcp is None:
        return transcript
    content = recording.logs.get(RECORD)
    refused = refused_calls(recording.stderr, tool.mcp)
    record = None if content is None else (*read_mcp_record(content, was_cut=recording.was_cut), *refused)
    surface = task.context.surfaces.get(tool.mcp.name)
    has_others = len(task.context.surfaces) > 1
    marked = mark_calls(transcript, tool.mcp, surface, record, has_others=has_others)
    return without_deep_values(marked)


def shown_surface(task: Task, recording: Recording) -> McpSurface | None:
    """Return what the MCP server under test listed to the agent, else before the run; None for another tool."""
    tool = task.spec.criteria.tool
    if tool is None or tool.mcp is None:
        return None
    return join_surfaces(find_listings(recording.logs.get(RECORD, b""))) or task.context.surfaces.get(
        tool.mcp.name
    )


def store_surfaces(context: RunContext, listings: Mapping[str, Json]) -> dict[str, Json]:
    """Store what servers show, with the run's descriptions, once for each content; return its hash as a run option.

    Raises `RequestError` for descriptions of tools or arguments that no server has.
    """
    if not listings:
        if context.options.descriptions:
            raise RequestError("The run has tool descriptions, but its suite has no MCP server (target.mcp).")
        return {}
    descriptions = plain_descriptions(context.options.descriptions)
    surfaces = []
    for name in sorted(listings):
        listing = listings[name]
        if not isinstance(listing, dict) or not isinstance(listing.get("tools"), list):
            raise RequestError(f"The MCP server '{name}' did not list its tools. Run its command by hand.")
        for method in ("initialize", "tools/list"):
            listing = mcp_messages.override_descriptions(method, listing, descriptions)
        surfaces.append((surface_of(name, listings[name]), surface_of(name, listing)))
    _check_names([before for before, _ in surfaces], descriptions)
    text = make_storable(encode_surfaces([after for _, after in surfaces]))
    if len(text) > LONGEST_LISTING:
        raise RequestError(
            f"The MCP servers' tools have {len(text):,} characters; at most {LONGEST_LISTING:,} are read."
        )
    sha256 = blob_hash(text.encode())
    key = {"project": context.run.project, "binary": MCP, "tool_version": sha256, "subcommand": ""}
    ToolHelp.objects.get_or_create(**key, defaults={"text": text})
    return {"surface": sha256}


def _check_names(surfaces: list[McpSurface], descriptions: Mapping[str, Any]) -> None:
    schemas = {tool.name: tool.schema for surface in surfaces for tool in surface.tools}
    for name, override in (descriptions.get("tools") or {}).items():
        if name not in schemas:
            raise RequestError(_unknown(f"a tool '{name}'", name, list(schemas)))
        known = list(schemas[name].get("properties") or ())
        for argument in override.get("arguments") or {}:
            if argument not in known:
                raise RequestError(_unknown(f"an argument '{argument}' of '{name}'", argument, known))


def _unknown(what: str, name: str, known: list[str]) -> str:
    listed = ", ".join(known[:10]) or "none"
    return f"The tool descriptions have {what}, which the server lacks. {did_you_mean(name, known) or f'It has: {listed}.'}"


def server_version(context: RunContext, tool: Tool) -> str:
    """Return the version of an MCP server with the first digits of what it shows; empty for another tool."""
    if tool.mcp is None or tool.mcp.name not in context.surfaces:
        return ""
    version = context.surfaces[tool.mcp.name].version
    return f"{tool.mcp.name} {version} ({context.options.surface[:8]})".replace("  ", " ")[:LONGEST_NAME]


def joined_versions(versions: Mapping[str, str]) -> str:
    """Return the versions of a run's MCP servers as one, by their names; that of the only one as it is."""
    if len(versions) < 2:
        return next(iter(versions.values()), "")
    most = LONGEST_NAME // len(versions) - 2
    named = (f"{name} {own.removeprefix(name).strip()}"[:most].rstrip() for name, own in versions.items())
    return ", ".join(named)


def plain_descriptions(descriptions: ToolDescriptions | None) -> dict[str, Any]:
    """Return descriptions as JSON; empty without any."""
    return descriptions.model_dump(mode="json", exclude_none=True) if descriptions else {}
