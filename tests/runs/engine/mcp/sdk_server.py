"""An MCP server on either official SDK, on standard input and output or on the port given."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

server: Any
if version("mcp").startswith("1."):
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("Shelves", instructions="Earlier words.", port=int((sys.argv[1:] or ["0"])[0]))
    options = {}
else:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    server = MCPServer("Shelves", instructions="Later words.")
    options = {"port": int(sys.argv[1])} if sys.argv[1:] else {}

    async def which(ctx: Context) -> str | InputRequiredResult:  # type: ignore[type-arg]
        """Ask which shelf."""
        if ctx.input_responses:
            return "put on it"
        form = ElicitRequestFormParams(
            message="Which?", requested_schema={"type": "object", "properties": {}}
        )
        return InputRequiredResult(input_requests={"q": ElicitRequest(params=form)}, request_state="s")

    which.__annotations__ = {"ctx": Context, "return": str | InputRequiredResult}
    server.add_tool(which)


@server.tool()  # type: ignore[untyped-decorator]
def put(shelf: str) -> str:
    """Put a note on a shelf."""
    if shelf == "full":
        raise ValueError("The shelf is full.")
    return f"put on {shelf}"


server.run(transport="streamable-http" if sys.argv[1:] else "stdio", **options)
