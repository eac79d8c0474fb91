"""Generated conversations of real agents with a server that misbehaves, and what its own log says of them.

The count by the log shares no code with evalhub's.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runs.engine import run_here
from runs.models import CommandRecord, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.real_agents.real import LOOPBACK_ONLY, give_price, playing
from tests.real_agents.test_runs import target
from tests.runs.carrying import launch
from tests.runs.servers import Reply, serving

SERVER = Path(__file__).parents[1] / "runs/engine/mcp/misbehaving_server.py"
SERVERS = ("nasty", "other")
PLAIN = ("echo", "fail", "refuse", "late", "shape", "big", "noise", "get_item", "grow")
UNKNOWN = "no_such"
OWN_LIMIT = {"claude_code": {"MCP_TOOL_TIMEOUT": "4000"}}
"""Variables by which an agent gives up calls after seconds; `never` is left to such agents."""
# fmt: off
SUB_AGENTS: dict[str, Any] = {
    "codex": {"tool": "multi_agent_v1/spawn_agent", "arguments": {"message": "{prompt}"}},
    "opencode": {"tool": "task", "arguments": {"description": "sub", "prompt": "{prompt}", "subagent_type": "general"}},
    "claude_code": {"tool": "Agent", "arguments": {"description": "sub", "prompt": "{prompt}", "subagent_type": "general-purpose"}},
}
# fmt: on
SCENARIO = """
name: conversation-{number:03}
target:
  mcp: {{name: {server}, command: {python} server.py}}
  env: {{LOG_URL: "{log}"}}
  files: [server.py]
template_folder: box
task: {{prompt: "CONVERSATION {number:03};"}}
evaluation: {{gates: [{{type: mcp_not_called, tool: no.tool}}]}}
"""
Found = Counter[tuple[str, str, str]]
"""Calls by tool, key and how they ended."""


@dataclass
class Conversation:
    """What the model does in one trial, and the calls that never leave the agent."""

    kind: str
    number: int
    server: str
    turns: list[dict[str, Any]] = field(default_factory=list)
    sub_turns: list[dict[str, Any]] = field(default_factory=list)
    refused: Found = field(default_factory=Counter)
    _keys: int = 0

    def call(self, tool: str) -> dict[str, Any]:
        """Return a call with a key of its own."""
        self._keys += 1
        key = f"{self.number:03}-{self._keys}"
        if tool == UNKNOWN:
            # Codex (on standard error) and opencode name the tool alone.
            known = key if self.kind == "claude_code" else "None"
            self.refused[tool, known, "unknown_tool"] += 1
        return {"tool": f"{self.server}/{tool}", "arguments": {"key": key}}


def generated(kind: str, number: int, draw: random.Random) -> Conversation:
    """Return a conversation of an agent: refused, late, failing and parallel calls, perhaps a sub-agent, perhaps a crash."""
    made = Conversation(kind, number, SERVERS[number % 2])
    tools = (*PLAIN, UNKNOWN, *(["never"] if kind in OWN_LIMIT else []))
    for _ in range(draw.randint(1, 4)):
        turn = made.call(draw.choice(tools))
        if draw.random() < 0.3:
            turn["also"] = [made.call(draw.choice(PLAIN)) for _ in range(draw.randint(1, 3))]
        made.turns.append(turn)
    if draw.random() < 0.25:
        made.sub_turns = [made.call(draw.choice(PLAIN[:3])) for _ in range(draw.randint(1, 3))]
        made.sub_turns.append({"text": "Done."})
        text = json.dumps(SUB_AGENTS[kind]).replace("{prompt}", f"SUBTASK {number:03};")
        made.turns.append(json.loads(text))
        if kind == "codex":
            made.turns.append({"command": "sleep 6"})  # it goes on beside its sub-agents
    # Sub-agents of the others share the server with the agent: calls after its end would not be in its log.
    if draw.random() < 0.2 and (kind == "codex" or not made.sub_turns):
        made.turns.append(made.call("crash"))
    made.turns.append({"text": "Done."})
    return made


def play(kind: str, count: int, seed: int) -> list[tuple[Conversation, Trial, Found, Found]]:
    """Play conversations with an agent in one run; return each with its trial, evalhub's calls, and those by the log."""
    draw = random.Random(f"{kind} {seed}")
    made = [generated(kind, number, draw) for number in range(count)]
    project = make_project()
    give_price(project)
    sessions = [
        {"when": f"SUBTASK {each.number:03};", "turns": each.sub_turns} for each in made if each.sub_turns
    ]
    sessions += [{"when": f"CONVERSATION {each.number:03};", "turns": each.turns} for each in made]
    with serving(Reply({})) as log, playing({"text": "Done."}, sessions=sessions) as model:
        given = target(kind, model.url)
        given["env"] = {**LOOPBACK_ONLY, **OWN_LIMIT.get(kind, {})}
        import_targets(project, json.dumps({"targets": [given]}).encode(), "targets.yaml", by=None)
        files = {
            f"conversation-{each.number:03}.yaml": SCENARIO.format(
                number=each.number, server=each.server, python=sys.executable, log=log.url
            ).encode()
            for each in made
        }
        files["templates/box/server.py"] = SERVER.read_bytes()
        (imported,) = import_files(Bundle("conversations", files), project=project, by=None)
        run_here.run_here(launch(imported.version, targets=[kind], concurrency=2))
        entries = [json.loads(request.body) for request in log.requests]
    trials = {trial.scenario.key: trial for trial in Trial.objects.select_related("scenario", "run")}
    played = []
    for each in made:
        trial = trials[f"conversation-{each.number:03}"]
        by_log = Counter(
            (entry["tool"], entry["key"], entry["end"])
            for entry in entries
            if str(entry["key"]).startswith(f"{each.number:03}-")
        )
        played.append((each, trial, counted(trial, each.server), by_log + each.refused))
    return played


def counted(trial: Trial, server: str) -> Found:
    """Return the calls that evalhub counted; the server is named, as the run has two."""
    found: Found = Counter()
    for row in CommandRecord.objects.filter(trial=trial, help=False):
        tool, _, arguments = row.line.partition(" ")
        given = json.loads(arguments or "{}")
        end = row.failure if row.exit_code is not None else "unknown"
        if row.failed != bool(row.failure):
            end = f"inconsistent: {end}"
        found[tool.removeprefix(f"{server}/"), str(given.get("key")), end] += 1
    return found
