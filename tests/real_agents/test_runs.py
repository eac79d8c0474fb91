"""A suite over three real agents and two guidances, started from the page."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from runs.execution import run_here
from runs.models import Launch, Run, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import read_path
from scenarios.formats.parsed import FixtureFile
from scenarios.imports import import_files
from scenarios.models import Guidance, Suite
from scenarios.storing import keep_guidance
from tests.builders import make_member, make_project
from tests.real_agents.real import (
    AGENTS,
    ANSWER,
    COMMANDS,
    KEY,
    PROGRAMS,
    TASKMGR,
    descriptors,
    playing,
    turns,
)
from tests.runs.carrying import launch
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

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


def guidance(of: Suite, rule: str) -> Guidance:
    """Guidance under the names that the three agents read."""
    files = tuple(FixtureFile(name, rule.encode()) for name in ("AGENTS.md", "CLAUDE.md"))
    return keep_guidance(of, files, by=None, name=rule)[0]


def target(kind: str, url: str) -> dict[str, Any]:
    program = str(PROGRAMS / AGENTS[kind][0])
    named = {"name": kind, "provider": kind, "executable": program}
    return {**named, "model": "scripted", "base_url": url, "api_key": "${{ SCRIPTED_KEY }}"}


@pytest.mark.django_db(transaction=True)
def test_three_agents_with_two_guidances_from_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    folder = tmp_path / "taskmgr"
    suite(folder)
    [imported] = import_files(read_path(folder), project=project, by=None)
    rules = [guidance(imported.version.suite, f"Rule {number}: use taskmgr.") for number in (71, 72)]
    client = Client()
    client.force_login(make_member(project, "admin"))
    with playing(*turns(*COMMANDS)) as model:
        content = json.dumps({"targets": [target(kind, model.url) for kind in AGENTS]}).encode()
        import_targets(project, content, "targets.yaml", by=None)
        for rule in rules:
            form = {"suite": imported.version.suite.slug, "targets": list(AGENTS), "trials": "1"}
            answer = client.post("/p/tools/runs/new/", {**form, "guidance": str(rule.pk), "start": "yes"})
            assert answer.status_code == 302, parse(answer).text
        for launch in Launch.objects.order_by("pk"):
            run_here.run_here(launch)
    trials = Trial.objects.select_related("run__target", "run__guidance")
    assert len(trials) == 6
    for trial in trials:
        assert (trial.outcome, trial.answer, trial.error) == ("pass", ANSWER, "")
        about = trial.detail["interaction"]
        figures = [
            about[name] for name in ("total_commands", "unique_commands", "error_count", "help_seeking")
        ]
        assert figures == [6, 5, 2, 1], trial.run.target.name
        page = parse(client.get(f"/p/tools/trials/{trial.pk}/"))
        assert trial.detail["agent_version"] in page.text
    asked = [json.dumps(request.body) for request in model.seen]
    assert [sum(f"Rule {number}" in text for text in asked) for number in (71, 72)] == [21, 21]
    assert Run.objects.filter(outcome="pass").count() == 6


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_two_hundred_trials_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    folder, temporary = tmp_path / "taskmgr", tmp_path / "temporary"
    suite(folder)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    [imported] = import_files(read_path(folder), project=project, by=None)
    with playing(*turns(COMMANDS[3])) as model:
        for kind, trials in {"codex": 185, "claude_code": 10, "opencode": 5}.items():
            given = {**target(kind, model.url), "env": {"LEFT_BY": str(tmp_path)}}
            import_targets(project, json.dumps({"targets": [given]}).encode(), "targets.yaml", by=None)
            run_here.run_here(launch(imported.version, targets=[kind], trials=3, concurrency=3))
            before = descriptors(), entries(Path(settings.WORK_DIR))
            began = launch(imported.version, targets=[kind], trials=trials, concurrency=3)
            run_here.run_here(began)
            assert began.runs.get().trial_set.filter(outcome="pass").count() == trials
            assert descriptors() <= before[0] + 3
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
