"""A scripted agent on the official SDK: it reads the configuration of its MCP server and does what the prompt says.

Each line of the prompt is a JSON list: a tool with arguments, "read" with an address, "prompt" with a name, or "sleep" with seconds. It prints the server's tools.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(lines: list[str]) -> None:
    config = json.loads(Path(os.environ["LLM_TOOL_TEST_MCP_CONFIG"]).read_text())
    (server,) = config["mcpServers"].values()
    if server.get("url"):
        transport = streamablehttp_client(server["url"])
    else:
        transport = stdio_client(
            StdioServerParameters(command=server["command"], args=server["args"], env={})
        )
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        hello = await session.initialize()
        print(hello.instructions)
        for tool in (await session.list_tools()).tools:
            print(tool.name, "|", tool.description, "|", json.dumps(tool.inputSchema))
        for line in lines:
            name, given = json.loads(line)
            if name == "sleep":
                await asyncio.sleep(given)
                continue
            with suppress(McpError):
                if name == "prompt":
                    await session.get_prompt(given)
                    continue
                await (session.read_resource(given) if name == "read" else session.call_tool(name, given))


asyncio.run(main([line for line in sys.argv[1].splitlines() if line.strip()]))
