"""Many trials of real agents, and what they leave behind."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from runs.engine import run_here
from runs.sandbox.filtered_network import MOST_FREE
from runs.targets.import_targets import import_targets
from scenarios.bundles import read_path
from scenarios.imports import import_files
from tests.builders import make_project
from tests.real_agents.real import (
    AGENTS,
    COMMANDS,
    DIRECT,
    KEY,
    LOOPBACK_ONLY,
    MODELS,
    PROGRAMS,
    SESSION_AGENTS,
    TASKMGR,
    cost_is_right,
    descriptors,
    give_price,
    playing,
    turns,
)
from tests.runs.carrying import launch
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.waiting import until

TRIALS = {"codex": 54, "claude_code": 4, "opencode": 2}
SCENARIO = """
name: create-task
description: Creates a task.
target: {binary: taskmgr, command_pattern: 'taskmgr\\s+(\\S+)'}
template_folder: repo
task: {prompt: Create a task.}
evaluation:
  gates:
    - {type: file_contains, path: tasks.txt, substring: scripts system}
"""


def suite(folder: Path) -> None:
    (folder / "templates/repo").mkdir(parents=True)
    (folder / "create-task.yaml").write_text(SCENARIO)
    (folder / "templates/repo/taskmgr").write_text(TASKMGR)
    (folder / "templates/repo/taskmgr").chmod(0o755)


def target(kind: str, url: str) -> dict[str, Any]:
    program = str(PROGRAMS / (SESSION_AGENTS[kind] if kind in SESSION_AGENTS else AGENTS[kind][0]))
    env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
    named = {"name": kind, "provider": kind, "executable": program, "env": env}
    return {**named, "model": MODELS.get(kind, "scripted"), "base_url": url, "api_key": "${{ SCRIPTED_KEY }}"}


@pytest.mark.starts_first
@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_sixty_trials_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    give_price(project)
    folder, temporary = tmp_path / "taskmgr", tmp_path / "temporary"
    suite(folder)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    [imported] = import_files(read_path(folder), project=project, by=None)
    with playing(*turns(COMMANDS[3])) as model:
        for kind in TRIALS:
            given = {**target(kind, model.url), "env": {**LOOPBACK_ONLY, "LEFT_BY": str(tmp_path)}}
            import_targets(project, json.dumps({"targets": [given]}).encode(), "targets.yaml", by=None)
        # What a process opens once is open by now.
        run_here.run_here(launch(imported.version, targets=["codex"]))
        before = descriptors(), entries(Path(settings.WORK_DIR))
        for kind, trials in TRIALS.items():
            began = launch(imported.version, targets=[kind], trials=trials, concurrency=3)
            run_here.run_here(began)
            passed = began.runs.get().trial_set.filter(outcome="pass").select_related("run__target")
            assert len(passed) == trials
            assert all(map(cost_is_right, passed))
            # The model's connections end after the agents.
            # Agents and gates have namespaces of two kinds.
            until(lambda: descriptors() <= before[0] + 2 * MOST_FREE, 2)
            assert entries(Path(settings.WORK_DIR)) == before[1]
            assert entries(temporary) == []
            assert started_with(f"LEFT_BY={tmp_path}") == []


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def started_with(variable: str) -> list[str]:
    """Processes alive with this variable; those of other tests don't have it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found
