"""An agent on either official SDK: `python sdk_agent.py MODE ADDRESS`, or a command in place of the address.

MODE is `auto`, `legacy` or a revision; the earlier SDK has one mode. It prints the instructions, tools and results.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from typing import Any

from mcp import StdioServerParameters

MODE, ADDRESS = sys.argv[1:3]
CALLS: list[tuple[str, dict[str, Any]]] = [("put", {"shelf": "home"}), ("put", {"shelf": "full"})]


def parameters() -> Any:
    return StdioServerParameters(command=ADDRESS, args=sys.argv[3:])


async def use(session: Any) -> None:
    tools = [tool.name for tool in (await session.list_tools()).tools]
    print(sorted(tools))
    for name, arguments in [*CALLS, *([("which", {})] if "which" in tools and MODE != "legacy" else [])]:
        result = await session.call_tool(name, arguments)
        print(name, result.content[0].text)


async def earlier() -> None:
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    transport: Any = streamablehttp_client(ADDRESS) if "://" in ADDRESS else stdio_client(parameters())
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        print((await session.initialize()).instructions)
        await use(session)


async def later() -> None:
    from mcp.client import Client
    from mcp_types import ElicitResult

    async def elicit(*_: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={})

    server = ADDRESS if "://" in ADDRESS else parameters()
    async with Client(server, mode=MODE, elicitation_callback=elicit) as client:
        print(client.instructions)
        await use(client)


asyncio.run(earlier() if version("mcp").startswith("1.") else later())
