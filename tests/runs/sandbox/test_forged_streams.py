"""No process that an agent starts can write into the agent's stream through /proc."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.sandbox import Level
from tests.runs.containments import containment

FORGER = """
import os
try:
    os.write(os.open(f"/proc/{os.getppid()}/fd/1", os.O_WRONLY), b'{"type": "forged"}\\n')
except OSError:
    pass
"""
AGENT_PROGRAM = """
import subprocess, sys
print('{"type": "event"}', flush=True)
subprocess.run([sys.executable, "forger.py"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
print('{"type": "end"}', flush=True)
"""


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK, Level.LIMITS, Level.OFF])
@pytest.mark.parametrize("stdout_socket", [True, False], ids=["socket", "pipe"])
def test_a_child_cant_add_events(tmp_path: Path, level: Level, stdout_socket: bool) -> None:
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    (workspace / "forger.py").write_text(FORGER)
    (workspace / "agent.py").write_text(AGENT_PROGRAM)
    sandbox = containment(level).around(workspace, scratch, profile=AGENT)
    result = run_process(
        [sys.executable, "agent.py"],
        cwd=workspace,
        env={},
        timeout_seconds=60.0,
        sandbox=sandbox,
        stdout_socket=stdout_socket,
    )
    lines = result.stdout.decode().splitlines()
    assert (lines[0], lines[-1]) == ('{"type": "event"}', '{"type": "end"}'), result
    # A pipe shows that the forger works.
    assert ('{"type": "forged"}' in lines) is not stdout_socket
