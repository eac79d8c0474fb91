"""What the MCP servers of runs showed to agents, stored once for each content."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.tool_use.mcp_surface import McpSurface, decode_surfaces
from runs.models import Run, ToolHelp
from runs.models.usage import MCP


def surface_hash(run: Run) -> str:
    """Return the hash of what a run's MCP servers showed; empty for another tool."""
    return str(run.fingerprint.get("tool_surface") or "")


def surfaces_of(project: int, hashes: Sequence[str]) -> list[tuple[McpSurface, ...]]:
    """Return what is stored under each hash; nothing for an unknown or empty one. One query."""
    rows = ToolHelp.objects.filter(
        project=project, binary=MCP, subcommand="", tool_version__in=filter(None, hashes)
    )
    texts = dict(rows.values_list("tool_version", "text"))
    return [decode_surfaces(texts[each]) if each in texts else () for each in hashes]
