"""Programs that stand in for coding agents, and what a provider is asked to do with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from runs.sandbox.sandbox import Level
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.base import Invocation, Provider
from runs.targets.providers.registry import make_provider
from tests.runs.containments import containment
from tests.runs.targets.providers.invocations import invocation_of

FILES = Path(__file__).parents[3] / "files"
SECRET = "sesame-open-wide"
SESSION_FILES = {
    "gemini_cli": ".gemini/tmp/workspace/chats/session-1.jsonl",
    "qwen_code": ".qwen/projects/-work/chats/1.jsonl",
    "copilot_cli": ".copilot/session-state/1/events.jsonl",
    "claude_code": ".claude/projects/-work/1.jsonl",
}
"""Where agents keep their own session, in their home."""


def agent(kind: str, program: str, level: Level | None = None, **fields: Any) -> Provider:
    """A provider whose program is one of tests/files/agents."""
    given = {"executable": str(FILES / "agents" / program), **fields}
    named = {name: value for name, value in given.items() if value is not None}
    definition = define({"name": "coder", "provider": kind, **named})
    target = resolve_definition(definition, {"SECRET": SECRET})
    return make_provider(target, replace(containment(level), read=(FILES,)))


def invocation(tmp_path: Path, **changes: Any) -> Invocation:
    """A trial with a workspace and files beside it."""
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    given = {"prompt": "  Implement it. ", "key": "a/b c", "timeout_seconds": 20.0, **changes}
    return invocation_of(workspace=workspace, scratch=scratch, **given)


def beside(tmp_path: Path, name: str) -> Path:
    """A file of the bundle, which lies beside the workspace."""
    file = tmp_path / "bundle" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"content of {name}")
    return file
