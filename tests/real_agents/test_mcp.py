"""Real agents use a real MCP server behind the trial's proxy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from django.test import Client

from runs.engine import run_here
from runs.models import CommandRecord, FlagConfusion, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_member, make_project
from tests.real_agents.real import AGENTS, KEY, cost_is_right, give_price, playing
from tests.real_agents.test_runs import target
from tests.runs.carrying import launch
from tests.runs.engine.mcp.servers import NOTES_SERVER, serving
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

READ = {"codex": "read_mcp_resource", "claude_code": "ReadMcpResourceTool", "opencode": "read_mcp_resource"}
TURNS = [
    {"tool": "notes/search", "arguments": {"query": "milk"}},
    {"tool": "notes/serach", "arguments": {"query": "milk"}},
    {"tool": "notes/create", "arguments": {"titel": "Bread"}},
    {"tool": "notes/create", "arguments": {"title": "Buy milk"}},
    {"tool": "notes/create", "arguments": {"title": "Bread"}},
    {"text": "Done."},
]
FOUND = ["help ", "search ", "serach unknown_tool", "create arguments", "create is_error", "create "]
SCENARIO = """
name: notes
target:
  mcp: {{name: notes, {server}}}
  files: [notes_server.py]
template_folder: box
task: {{prompt: Create a note.}}
evaluation:
  gates:
    - {{type: mcp_called, tool: create, arguments: {{title: Bread}}, times: 1}}
    - {{type: mcp_not_called, tool: crash}}
"""
pytestmark = pytest.mark.xdist_group("trials")
"""In one process, which makes a database and loads evalhub's pages once."""
TEXTS = {"instructions": "Rule 81.", "tools": {"search": {"description": "Rule 82."}}}


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.django_db(transaction=True)
def test_an_agent_uses_the_server(kind, over, tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    give_price(project)
    with playing(
        {"tool": READ[kind], "arguments": {"server": "notes", "uri": "notes://guide"}}, *TURNS
    ) as model:
        content = json.dumps({"targets": [target(kind, model.url)]}).encode()
        import_targets(project, content, "targets.yaml", by=None)
        with serving(tmp_path) as url:
            how = f"command: {sys.executable} notes_server.py" if over == "stdio" else f"url: {url}"
            files = {"notes.yaml": SCENARIO.format(server=how).encode()}
            files["templates/box/notes_server.py"] = NOTES_SERVER.read_bytes()
            (imported,) = import_files(Bundle("notes", files), project=project, by=None)
            run = launch(imported.version, targets=[kind]).runs.get()
            run.options |= {"descriptions": TEXTS}
            run.save()
            run_here.run_here(run.launch)
    trial = Trial.objects.select_related("run__target").get()
    assert (trial.run.error, trial.error, trial.outcome) == ("", "", "pass"), trial.scores
    assert cost_is_right(trial)
    found = [f"{row.subcommand} {row.failure}" for row in CommandRecord.objects.filter(trial=trial)]
    # Codex's events lack calls of unknown tools.
    assert sorted(found) == sorted(FOUND)
    assert FlagConfusion.objects.get(run=trial.run, kind="near_miss").meant == "title"
    asked = json.dumps([request.body for request in model.seen])
    assert "Rule 81." in asked or kind != "codex"
    assert "Rule 82." in asked or kind == "claude_code", "Claude Code defers tools"
    client = Client()
    client.force_login(make_member(project, "admin"))
    page = parse(client.get(f"/p/tools/runs/{trial.run.pk}/?failing=create"))
    assert "Arguments don't fit the schema" in page.text
    assert not (Path.home() / ".codex" / "config.toml").exists() or kind != "codex"
