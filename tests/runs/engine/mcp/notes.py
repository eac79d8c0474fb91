"""A suite of notes, its server and a scripted agent, and what its trials called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.models import CommandRecord, Run, Trial
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from scenarios.models import SuiteVersion
from tests.runs.carrying import launch

HERE = Path(__file__).parent
CALLS: list[list[Any]] = [
    ["read", "notes://guide"],
    ["search", {"query": "milk"}],
    ["serach", {"query": "milk"}],
    ["create", {"titel": "Bread"}],
    ["create", {"title": "Bread", "color": "green"}],
    ["create", {"title": "Buy milk"}],
    ["create", {"title": "Bread"}],
]
GATES = """
    - {type: mcp_called, tool: search, arguments: {query: milk}, times: 1}
    - {type: mcp_not_called, tool: crash}
    - {type: file_contains, path: notes.txt, substring: Bread Ada}
"""


def suite(
    project: Project,
    server: str,
    calls: list[list[Any]] = CALLS,
    gates: str = GATES,
    *,
    agent: str = "",
    setup: str = "",
) -> SuiteVersion:
    prompt = "\n".join(f"    {json.dumps(call)}" for call in calls)
    setup = f"setup: {{commands: [{setup}]}}\n" if setup else ""
    scenario = f"""
name: notes
description: The agent keeps notes.
template_folder: box
target:
  mcp: {{name: notes, {server}}}
  env: {{NOTES_OWNER: Ada}}
  files: [notes_server.py]
{setup}task:
  prompt: |
{prompt}
evaluation:
  gates:{gates}
"""
    files = {"notes.yaml": scenario.encode()}
    for name in ("notes_server.py", "eras_server.py", "agent.py"):
        files[f"templates/box/{name}"] = (HERE / name).read_bytes()
    if agent:
        files["templates/box/agent.py"] = agent.encode()
    (imported,) = import_files(Bundle("notes", files), project=project, by=None)
    return imported.version


COMMAND = f"command: {sys.executable} notes_server.py"


def finished(version: SuiteVersion, **options: Any) -> Run:
    made = launch(version, targets=["shell"]).runs.get()
    made.options |= options
    made.save()
    run_here.run_here(made.launch)
    return Run.objects.get(pk=made.pk)


def commands(trial: Trial) -> list[tuple[str, bool, str]]:
    rows = CommandRecord.objects.filter(trial=trial)
    return [(row.subcommand, row.help, row.failure) for row in rows]
