"""The official SDK's earlier and later release as agent and as server, through the proxy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluators.tool_use.mcp_record import read_mcp_record
from runs.engine.mcp import mcp_connect, mcp_stdio
from runs.engine.mcp.mcp_http import fetch_tools
from tests.requirements import missing
from tests.runs.engine.mcp.proxies import Proxy, line_of, running
from tests.runs.engine.mcp.servers import listening

pytestmark = [pytest.mark.slow, pytest.mark.one_database]

HERE = Path(__file__).parent
SDKS = Path(__file__).parents[4] / ".agents"
EARLIER, LATER = "mcp-1.30.0", "mcp-2.3.0"
STARTS = 60.0
"""Seconds for an SDK to be imported on a busy machine."""


def python(sdk: str) -> str:
    found = SDKS / sdk / "bin/python"
    if not found.exists():
        missing("agents", f"{sdk} is not installed: run `make agents`.")
    return str(found)


def server(sdk: str) -> str:
    return f"{python(sdk)} {HERE / 'sdk_server.py'}"


def talk(proxy: Proxy, sdk: str, mode: str, *, over_http: bool) -> tuple[str, list[dict[str, Any]]]:
    """Let an agent talk to the server behind a proxy; return what it printed, and the record."""
    connect = proxy.folder / "door" / "connect.py"
    shutil.copy(mcp_connect.__file__, connect)
    (proxy.folder / "config.json").write_text("{}")
    agent = [python(sdk), str(HERE / "sdk_agent.py"), mode]
    if over_http:
        around = [sys.executable, "-IS", str(connect), str(proxy.folder / "config.json"), "--"]
        words = [*around, *agent, mcp_connect.MCP_ADDRESS]
    else:
        words = [*agent, sys.executable, "-IS", str(connect)]
    ended = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=120)
    return ended.stdout, proxy.end()


PAIRS = [
    (EARLIER, "legacy", EARLIER),
    (EARLIER, "legacy", LATER),
    (LATER, "auto", EARLIER),
    (LATER, "auto", LATER),
    (LATER, "legacy", LATER),
    (LATER, "2026-07-28", LATER),
]


@pytest.mark.parametrize("over_http", [False, True], ids=["stdio", "http"])
@pytest.mark.parametrize(("agent", "mode", "served"), PAIRS)
def test_an_agent_and_a_server_that_share_a_revision_talk(tmp_path, agent, mode, served, over_http):
    def check(**settings: Any) -> None:
        with running(tmp_path, descriptions={"instructions": "Other words."}, **settings) as proxy:
            assert proxy.wait(STARTS) == ""
            printed, record = talk(proxy, agent, mode, over_http=over_http)
            assert proxy.control.read() == b"", "nothing is said of revisions"
        # Who is sure of the revision asks for no instructions.
        assert printed.startswith("None\n" if mode == "2026-07-28" else "Other words.\n"), printed
        calls = read_mcp_record(b"".join(map(line_of, record)))
        found = [(call.tool, call.failure, call.ended) for call in calls]
        expected = [("put", "", True), ("put", "is_error", True)]
        if (agent, served) == (LATER, LATER) and mode != "legacy":
            expected.append(("which", "", True))
        assert found == expected, printed

    if not over_http:
        return check(command=server(served))
    with listening(tmp_path, *server(served).split(), "PORT") as port:
        return check(url=f"http://127.0.0.1:{port}/mcp")


@pytest.mark.parametrize("over_http", [False, True], ids=["stdio", "http"])
def test_an_agent_of_the_later_era_alone_shares_none_with_the_earlier_sdk(tmp_path, over_http):
    def check(**settings: Any) -> None:
        with running(tmp_path, **settings) as proxy:
            assert proxy.wait(STARTS) == ""
            talk(proxy, LATER, "2026-07-28", over_http=over_http)
            said = json.loads(proxy.control.read())["disagreement"]
        assert "share no protocol revision: the agent asked for 2026-07-28" in said

    if not over_http:
        return check(command=server(EARLIER))
    with listening(tmp_path, *server(EARLIER).split(), "PORT") as port:
        return check(url=f"http://127.0.0.1:{port}/mcp")


@pytest.mark.parametrize("sdk", [EARLIER, LATER])
def test_the_tools_of_either_sdk_are_listed(tmp_path, sdk):
    words = [sys.executable, "-IS", mcp_stdio.__file__, server(sdk)]
    over_stdio = json.loads(subprocess.run(words, stdout=subprocess.PIPE, timeout=120).stdout)
    with (
        listening(tmp_path, *server(sdk).split(), "PORT") as port,
        httpx.Client(trust_env=False, timeout=60) as http,
    ):
        over_http = fetch_tools(http, f"http://127.0.0.1:{port}/mcp")
    assert "put" in [tool["name"] for tool in over_stdio["tools"]]
    assert over_http == over_stdio
