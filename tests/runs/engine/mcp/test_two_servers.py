"""A run whose scenarios have different MCP servers with tools of the same names."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.engine import run_here
from runs.models import CommandRecord, FlagConfusion, Run, Trial
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_member, make_project
from tests.runs.carrying import launch, shell_target
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
HERE = Path(__file__).parent
CALLS: list[list[Any]] = [
    ["read", "notes://guide"],
    ["search", {"query": "milk"}],
    ["serach", {"query": "milk"}],
    ["create", {"titel": "Bread"}],
]


def scenario(server: str, gates: str) -> str:
    prompt = "\n".join(f"    {json.dumps(call)}" for call in CALLS)
    return f"""
name: {server}-scenario
template_folder: box
target:
  mcp: {{name: {server}, command: {sys.executable} notes_server.py}}
  files: [notes_server.py]
task:
  prompt: |
{prompt}
evaluation:
  gates:
    - {{type: mcp_not_called, tool: crash}}
{gates}
"""


GATES = {
    "notes": "    - {type: mcp_called, tool: search, times: 1}\n    - {type: mcp_not_called, tool: memos/search}",
    "memos": "    - {type: mcp_called, tool: memos/search, times: 1}",
}


def finished(*servers: str) -> tuple[Run, Client]:
    project = make_project()
    shell_target(project, command_template=f"{sys.executable} agent.py {{PROMPT}}")
    files = {f"{each}.yaml": scenario(each, GATES[each]).encode() for each in servers}
    for name in ("notes_server.py", "agent.py"):
        files[f"templates/box/{name}"] = (HERE / name).read_bytes()
    (imported,) = import_files(Bundle("both", files), project=project, by=None)
    run = launch(imported.version, targets=["shell"]).runs.get()
    run_here.run_here(run.launch)
    client = Client()
    client.force_login(make_member(project, "admin"))
    return Run.objects.get(pk=run.pk), client


@pytest.mark.slow
@pytest.mark.usefixtures("plain_static_files")
def test_calls_name_their_server():
    run, client = finished("notes", "memos")
    trials = Trial.objects.filter(run=run)
    assert [(each.error, each.outcome) for each in trials] == [("", "pass")] * 2, [
        each.scores for each in trials
    ]
    rows = CommandRecord.objects.filter(trial__run=run).order_by("trial__scenario__key", "n")
    found = [(row.subcommand, row.failure) for row in rows]
    assert found == [
        (name, failure)
        for server in ("memos", "notes")
        for name, failure in (
            ("help", ""),
            (f"{server}/search", ""),
            (f"{server}/serach", "unknown_tool"),
            (f"{server}/create", "arguments"),
        )
    ]
    assert [row.line.split(" ")[0] for row in rows if row.help] == [
        "memos/resources/read",
        "notes/resources/read",
    ]
    near = FlagConfusion.objects.filter(run=run, kind="near_miss").order_by("subcommand")
    assert [(row.subcommand, row.typed, row.meant) for row in near] == [
        ("memos/create", "titel", "title"),
        ("notes/create", "titel", "title"),
    ]
    unknown = FlagConfusion.objects.filter(run=run, kind="unknown_command").order_by("subcommand")
    assert [(row.typed, row.meant) for row in unknown] == [("serach", "search")] * 2
    assert "memos " in run.tool_version and ", notes " in run.tool_version
    page = parse(client.get(f"/p/tools/runs/{run.pk}/?failing=notes/create"))
    assert "Arguments don't fit the schema" in page.text and "memos/search" in page.text
