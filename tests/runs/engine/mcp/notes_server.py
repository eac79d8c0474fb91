"""An MCP server of notes on the official SDK: over standard input and output, or on the port given over HTTP or `sse`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from mcp.server.fastmcp import FastMCP

server = FastMCP("Notes", instructions="Search before you create.", port=int((sys.argv[1:] or ["0"])[0]))
NOTES = ["Buy milk"]


@server.tool()
def search(query: str, limit: int = 10) -> str:
    """Find notes."""
    return "\n".join([note for note in NOTES if query.lower() in note.lower()][:limit]) or "Nothing found."


@server.tool()
def create(title: str, color: Literal["red", "blue"] = "red") -> str:
    """Create a note."""
    if title in NOTES:
        raise ValueError(f"There is a note '{title}' already.")
    NOTES.append(title)
    with Path("notes.txt").open("a") as file:
        file.write(f"{title} {os.environ.get('NOTES_OWNER', '')}\n")
    return f"Created '{title}' ({color})."


@server.tool()
def crash() -> str:
    """End the server."""
    os._exit(3)


@server.prompt()
def tidy() -> str:
    """Tidy up."""
    return "Sort the notes."


@server.resource("notes://guide")
def guide() -> str:
    """How to use notes."""
    return "A note has a title."


if __name__ == "__main__":
    server.run(transport="streamable-http" if len(sys.argv) > 1 else "stdio")
