"""The installed agents, a tool to use, and what a scripted model makes of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from evalhub.teams.models import Project
from evaluators.transcripts.latest import LatestCalls
from runs.models import ModelPrice, Trial
from runs.sandbox.sandbox import Containment, Level
from runs.targets.definitions import define, resolve_definition
from runs.targets.model_server.script import read_script
from runs.targets.model_server.server import ScriptPlayer, SeenRequest, serve_models
from runs.targets.providers.base import Invocation, PollCalls, Provider
from runs.targets.providers.registry import make_provider
from tests.runs.containments import containment
from tests.runs.targets.providers.invocations import invocation_of
from tests.waiting import PATIENCE

PROGRAMS = Path(
    os.environ.get("EVALHUB_TEST_AGENTS", "") or Path(__file__).parents[2] / ".agents/node_modules/.bin"
).resolve()
AGENTS = {
    "codex": ("codex", "AGENTS.md"),
    "claude_code": ("claude", "CLAUDE.md"),
    "opencode": ("opencode", "AGENTS.md"),
}
"""Program and file of instructions by provider."""
SESSION_AGENTS = {"gemini_cli": "gemini", "qwen_code": "qwen", "copilot_cli": "copilot"}
"""Programs of the providers that read session files."""
MODELS = {"gemini_cli": "gemini-2.5-pro", "qwen_code": "gemini-2.5-pro", "copilot_cli": "gpt-5"}
"""What the model is called, where a program takes no name that it doesn't know."""
KEY = "sk-scripted-0123456789abcdef"
LOOPBACK_ONLY = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
    "npm_config_offline": "true",
}
"""A target's variables: when they start, agents look for plugins and updates on the internet, which is refused."""
DIRECT = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "")
"""Qwen Code sends requests to 127.0.0.1 through a proxy, too."""
TASKMGR = """#!/bin/sh
case "$1" in
  --help) echo "Commands: create, list" ;;
  create) [ -n "${2:-}" ] || { echo "A name is missing" >&2; exit 1; }; echo "$2" >> tasks.txt ;;
  list) cat tasks.txt ;;
  *) echo "Unknown command: $1" >&2; exit 1 ;;
esac
"""
COMMANDS = [
    "./taskmgr --help",
    './taskmgr creat "Implement scripts system"',
    "./taskmgr create",
    './taskmgr create "Implement scripts system"',
    "cat tasks.txt | head -3 && ./taskmgr list",
    "./taskmgr list",
]
CODES = [0, 1, 1, 0, 0, 0]
ANSWER = "Created the task and listed it."


def turns(*commands: str, answer: str = ANSWER) -> list[dict[str, Any]]:
    return [*({"command": command} for command in commands), {"text": answer}]


@dataclass
class Model:
    """A running model server."""

    url: str
    player: ScriptPlayer

    @property
    def seen(self) -> list[SeenRequest]:
        """The requests that offer tools: not those for titles."""
        return [request for request in self.player.seen if request.body.get("tools")]


@contextmanager
def playing(*steps: dict[str, Any], **more: Any) -> Iterator[Model]:
    script = read_script(json.dumps({"turns": list(steps), **more}).encode(), "script.yaml")
    player = ScriptPlayer(script)
    with serve_models(player) as url:
        yield Model(url, player)


def on_agents_path(level: Level | None = None) -> Containment:
    base = containment(level)
    return replace(base, path=f"{PROGRAMS}:{base.path}")


def agent(kind: str, url: str, level: Level | None = None, **fields: Any) -> Provider:
    """The real agent of a target that names a model, its address and a key."""
    given = {"model": "scripted", "base_url": url, "api_key": "${{ KEY }}", "env": LOOPBACK_ONLY, **fields}
    named = {name: value for name, value in given.items() if value is not None}
    target = resolve_definition(define({"name": kind, "provider": kind, **named}), {"KEY": KEY})
    return make_provider(target, on_agents_path(level))


def invocation(tmp_path: Path, kind: str = "codex", **changes: Any) -> Invocation:
    """A trial in a workspace with the tool and the agent's own instructions."""
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    (workspace / "taskmgr").write_text(TASKMGR)
    (workspace / "taskmgr").chmod(0o755)
    (workspace / AGENTS[kind][1]).write_text("Rule 4711: use taskmgr.")
    given = {"prompt": "Create a task.", "key": "tasks", "timeout_seconds": PATIENCE * 60.0, **changes}
    return invocation_of(workspace=workspace, scratch=scratch, **given)


class Watched:
    """Polls the calls of a running agent."""

    def __init__(self, until: str) -> None:
        self.until, self.looks, self.seen = until, [], LatestCalls()
        self.looks: list[PollCalls]

    def cancelled(self) -> bool:
        """Cancel the session once the awaited command runs."""
        self.seen = self.looks[0]() if self.looks else self.seen
        return self.until in self.seen.last


def user_home(tmp_path: Path) -> Path:
    """A home of somebody who uses every agent: with rules, tools and logins of their own."""
    home = tmp_path / "home-of-the-user"
    rules = (".codex/AGENTS.md", ".claude/CLAUDE.md", ".config/opencode/AGENTS.md", "AGENTS.md", "CLAUDE.md")
    for name in rules:
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Rule 666: of the user.")
    (home / ".codex/config.toml").write_text('[mcp_servers.mine]\ncommand = "no-such-server"\n')
    return home


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def descriptors() -> int:
    """How many files are open; SQLite's don't count, for it closes them once no thread uses the database."""
    opened = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            opened += ".sqlite3" not in str(descriptor.readlink())
    return opened


def give_price(project: Project) -> None:
    """Give the scripted model a price; without one litellm is asked, which takes seconds to load."""
    ModelPrice.objects.create(project=project, model="scripted", input_per_million=5, output_per_million=25)


def cost_is_right(trial: Trial) -> bool:
    """Whether a trial costs its tokens by the price; Claude Code reports a cost of its own."""
    if trial.run.target.provider == "claude_code":
        return bool(trial.cost_usd)
    return trial.cost_usd == pytest.approx((5 * trial.tokens_in + 25 * trial.tokens_out) / 1e6)
