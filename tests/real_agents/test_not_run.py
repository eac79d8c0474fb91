"""Calls that Claude Code and opencode refuse, and commands that they leave in the background, by the real programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from runs.engine.assess import parse_recording
from tests.real_agents.real import agent, invocation, playing

TOOL = Tool(binary="taskmgr")
NO_CREATING = "grep -q create && { echo no creating >&2; exit 2; }; exit 0"
ASKING = ["--permission-mode", "default"]
SLEEPING = "python3 -c 'import time; time.sleep({})'"
"""Claude Code refuses a long sleep."""
PLUGIN = """export const Hook = async () => ({
  "tool.execute.before": async (call, { args }) => { if (args.command.includes("create ")) throw new Error("no") },
})
"""
SETTINGS = {
    "permissions": {"deny": ["Bash(./taskmgr list:*)"]},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": NO_CREATING}]}]},
}


def results(
    kind: str, tmp_path: Path, files: dict[str, Any], *steps: dict[str, Any], **fields: Any
) -> list[tuple[str, int | None]]:
    """Return why each call of a session did not run, and its exit code; and check what layer 1 makes of them."""
    with playing(*steps, {"text": "done"}) as model:
        given = invocation(tmp_path, kind, timeout_seconds=fields.pop("seconds", 60.0))
        for name, content in files.items():
            path = given.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        recording = agent(kind, model.url, **fields).invoke(given)
    transcript = parse_recording(recording)
    found = [
        (call.result.not_run if call.result else "", call.exit_code) for call in pair_calls(transcript.events)
    ]
    counted = analyse(transcript, TOOL, completed=True)
    assert counted.not_run <= sum(bool(why) for why, _ in found)
    assert counted.total_commands + counted.not_run <= len(found)
    return found


def test_claude_code_says_what_it_refused(tmp_path: Path) -> None:
    found = results(
        "claude_code",
        tmp_path,
        {".claude/settings.json": SETTINGS},
        {"command": "./taskmgr list"},
        {"command": "./taskmgr create x"},
        {"tool": "Bash", "arguments": {"cmd": "./taskmgr list"}},
        {"command": "sleep 30; ./taskmgr creat"},
        {"command": "./taskmgr creat"},
    )
    refused = [("denied", None), ("denied", None), ("invalid", None), ("denied", None)]
    assert found == [*refused, ("", 1)]


def test_claude_code_asks_nobody_without_a_person(tmp_path: Path) -> None:
    step = {"command": "./taskmgr list"}
    assert results("claude_code", tmp_path, {}, step, args=ASKING) == [("denied", None)]


def test_claude_code_says_how_a_command_in_the_background_ended(tmp_path: Path) -> None:
    background = {"description": "x", "run_in_background": True}
    found = results(
        "claude_code",
        tmp_path,
        {},
        {"tool": "Bash", "arguments": {"command": "sleep 1; ./taskmgr creat", **background}},
        {"tool": "Bash", "arguments": {"command": "sleep 60; ./taskmgr list", **background}},
        {"command": "sleep 3"},
        # Claude Code waits for its background until the time limit.
        seconds=25.0,
    )
    assert found == [("", 1), ("", None), ("", 0)]


def test_claude_code_says_how_a_command_ended_that_it_moved_to_the_background(tmp_path: Path) -> None:
    found = results(
        "claude_code",
        tmp_path,
        {},
        {"tool": "Bash", "arguments": {"command": f"{SLEEPING.format(3)}; ./taskmgr creat", "timeout": 1500}},
        {"command": SLEEPING.format(5)},
    )
    assert found == [("", 1), ("", 0)]


@pytest.mark.parametrize("kind", ["codex", "claude_code", "opencode"])
def test_a_command_that_the_time_limit_ends_is_unknown(kind: str, tmp_path: Path) -> None:
    long = {"command": f"{SLEEPING.format(90)}; ./taskmgr list"}
    # opencode alone takes 15 s to its first command on a busy machine.
    seconds = 45.0 if kind == "opencode" else 20.0
    found = results(kind, tmp_path, {}, {"command": "./taskmgr creat"}, long, seconds=seconds)
    assert found == [("", 1), ("", None)]


def test_opencode_says_what_a_plugin_refused(tmp_path: Path) -> None:
    steps = {"command": "./taskmgr create x"}, {"command": "./taskmgr creat"}
    found = results("opencode", tmp_path, {".opencode/plugin/hook.js": PLUGIN}, *steps)
    assert found == [("denied", None), ("", 1)]


def test_opencode_says_what_it_refused(tmp_path: Path) -> None:
    found = results(
        "opencode",
        tmp_path,
        {},
        {"tool": "bash", "arguments": {"cmd": "./taskmgr list"}},
        {"tool": "nosuch", "arguments": {}},
        {"command": "./taskmgr creat"},
    )
    assert found == [("invalid", None), ("invalid", None), ("", 1)]
