"""The agent reaches the server through its connection, and neither record nor sockets otherwise, at both levels."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from runs.engine.mcp import mcp_proxy
from runs.engine.mcp.mcp_serving import write_programs
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.sandbox import Level
from tests.runs.containments import containment

pytestmark = pytest.mark.one_database

SERVER = """while read -r line; do echo '{"jsonrpc":"2.0","id":7,"result":{}}'; done"""
AGENT_SCRIPT = """
echo '{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"put"}}}}' | {python} -IS {door}/connect.py
echo forged >> {server}/record.jsonl
rm -f {door}/door {door}/connect.py
mv {door} {door}2
ls {server}
"""


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK], ids=str)
def test_the_record_is_out_of_reach(tmp_path: Path, level: Level) -> None:
    workspace, scratch, server, door = (
        tmp_path / name for name in ("workspace", "scratch", "server", "door")
    )
    for folder in (workspace, scratch):
        folder.mkdir()
    write_programs(server, door)
    proxy = containment(level).around(workspace, server, profile=AGENT, writable=(door,))
    places = {"folder": proxy.inside(server), "door_folder": str(door), "workspace": proxy.inside(workspace)}
    (server / "settings.json").write_text(json.dumps({**places, "command": SERVER}))
    program = proxy.inside(server / "runs" / "engine" / "mcp" / "mcp_proxy.py")
    words = [sys.executable, "-IS", program, proxy.inside(server / "settings.json")]

    def serve() -> None:
        run_process(words, cwd=workspace, env={}, timeout_seconds=60, limits=proxy.limits, sandbox=proxy)

    thread = threading.Thread(target=serve)
    thread.start()
    with socket.socket(socket.AF_UNIX) as control:
        end = time.monotonic() + 30
        while control.connect_ex(str(server / mcp_proxy.CONTROL)) and time.monotonic() < end:
            time.sleep(0.05)
        while not (door / mcp_proxy.DOOR).exists() and time.monotonic() < end:
            time.sleep(0.05)
        agent = containment(level).around(workspace, scratch, profile=AGENT, readable=(door,))
        script = AGENT_SCRIPT.format(python=sys.executable, door=door, server=server)
        ended = run_process(
            script, cwd=workspace, env={}, timeout_seconds=60, limits=agent.limits, sandbox=agent
        )
        control.sendall(b"end\n")
    thread.join()
    assert ended.stdout == b'{"jsonrpc":"2.0","id":7,"result":{}}\n'
    lines = [json.loads(line) for line in (server / mcp_proxy.RECORD).read_text().splitlines()]
    assert [sorted(line) for line in lines] == [
        ["connection", "number", "request", "time"],
        ["connection", "number", "response", "seconds"],
    ]
    assert (door / "connect.py").exists()
