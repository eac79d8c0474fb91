"""Servers that the real agents leave in the background and end as they exit: their ends are unknown, not failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.tool_use.recorded_commands import read_call_record
from runs.sandbox.recording.record import RecordedTool, ToolRecord
from runs.sandbox.sandbox import HOME, SCRATCH, WORKSPACE, Level
from runs.targets.agents.session_end import broken_by
from tests.real_agents.real import (
    DIRECT,
    LOOPBACK_ONLY,
    MODELS,
    PROGRAMS,
    SESSION_AGENTS,
    agent,
    invocation,
    playing,
)

SERVER = """#!/bin/sh
case "$1" in serve) echo up; exec sleep 300 ;; *) echo ok ;; esac
"""
IN_BACKGROUND: dict[str, dict[str, Any]] = {
    "claude_code": {"tool": "Bash", "arguments": {"command": "./kv serve", "run_in_background": True}},
    "qwen_code": {"tool": "run_shell_command", "arguments": {"command": "./kv serve", "is_background": True}},
    "gemini_cli": {
        "tool": "run_shell_command",
        "arguments": {"command": "./kv serve", "is_background": True},
    },
    # What a command leaves in the background is ended with it; a command itself may go on.
    "codex": {"tool": "exec_command", "arguments": {"cmd": "./kv serve", "yield_time_ms": 500}},
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", IN_BACKGROUND)
def test_a_server_that_its_agent_ends_is_unknown(kind: str, tmp_path: Path) -> None:
    asked = invocation(tmp_path, timeout_seconds=60.0)
    (asked.workspace / "kv").write_text(SERVER)
    (asked.workspace / "kv").chmod(0o755)
    tool = RecordedTool("kv", (f"{WORKSPACE}/kv",))
    record = ToolRecord(tool, asked.workspace, WORKSPACE, (WORKSPACE, SCRATCH, "/tmp", HOME))
    steps = [{"command": "./kv put"}, IN_BACKGROUND[kind], {"command": "./kv get"}, {"text": "Done."}]
    with playing(*steps) as model:
        fields: dict[str, Any] = {"env": LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})}
        if kind in SESSION_AGENTS:
            fields |= {"model": MODELS[kind], "executable": str(PROGRAMS / SESSION_AGENTS[kind])}
        recording = agent(kind, model.url, Level.BWRAP, **fields).invoke(replace(asked, record=record))
    assert (recording.timed_out, recording.exit_code, broken_by(recording)) == (False, 0, None)
    calls = {call.argv[1]: (call.exit, call.signal) for call in read_call_record(record.content or b"")}
    assert calls == {"put": (0, None), "serve": (None, None), "get": (0, None)}
