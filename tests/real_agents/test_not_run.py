"""Calls that Claude Code and opencode refuse, and commands that they leave in the background, by the real programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluators.calls import calls
from evaluators.interaction import analyse
from evaluators.tool import Tool
from evaluators.transcripts import parse
from tests.real_agents.real import agent, invocation, playing

TOOL = Tool(binary="taskmgr")
NO_CREATING = "grep -q create && { echo no creating >&2; exit 2; }; exit 0"
SETTINGS = {
    "permissions": {"deny": ["Bash(./taskmgr list:*)"]},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": NO_CREATING}]}]},
}


def results(
    kind: str, tmp_path: Path, files: dict[str, Any], *steps: dict[str, Any]
) -> list[tuple[str, int | None]]:
    """Return why each call of a session did not run, and its exit code; and check what layer 1 makes of them."""
    with playing(*steps, {"text": "done"}) as model:
        given = invocation(tmp_path, kind)
        for name, content in files.items():
            path = given.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
        recording = agent(kind, model.url).invoke(given)
    transcript = parse(recording.parser, recording.raw)
    found = [
        (call.result.not_run if call.result else "", call.exit_code) for call in calls(transcript.events)
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
        {"command": "./taskmgr creat"},
    )
    assert found == [("denied", None), ("denied", None), ("invalid", None), ("", 1)]


def test_claude_code_says_how_a_command_in_the_background_ended(tmp_path: Path) -> None:
    background = {"description": "x", "run_in_background": True}
    found = results(
        "claude_code",
        tmp_path,
        {},
        {"tool": "Bash", "arguments": {"command": "sleep 1; ./taskmgr creat", **background}},
        {"tool": "Bash", "arguments": {"command": "sleep 60; ./taskmgr list", **background}},
        {"command": "sleep 3"},
    )
    assert found == [("", 1), ("", None), ("", 0)]


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
