"""Whose call each execution of git is, under real agents that run git for themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.engine import run_here
from runs.models import CommandRecord, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.real_agents.real import AGENTS, KEY, playing, turns
from tests.real_agents.test_runs import target
from tests.runs.carrying import launch
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

SCENARIO = """
name: history
target: {binary: git}
template_folder: repo
task: {prompt: Look at the history.}
setup:
  commands:
    - git init -q -b main . && git add -A && git -c user.name=a -c user.email=a@example.org commit -qm first
evaluation:
  gates:
    - {type: file_exists, path: Makefile}
"""
COMMANDS = [
    "git status --short | head -3",
    "git rev-parse HEAD",
    "git show nothing || git log -1 --format=%s",
    "for n in 1 2; do git branch --list b$n; done",
    "make log",
    "sh check.sh",
    "echo 'git tag' > own.sh; sh own.sh; env A=1 git diff --quiet && echo same",
]
OWN = [
    ("status", 0),
    ("rev-parse", 0),
    ("show", 128),
    ("log", 0),
    ("branch", 0),
    ("branch", 0),
    ("tag", 0),
    ("diff", 0),
]
HOOKS = {
    "hooks": {
        "PostToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "git describe --always"}]}
        ]
    }
}
pytestmark = pytest.mark.xdist_group("trials")
"""In one process, which makes a database and loads evalhub's pages once."""


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.django_db(transaction=True)
def test_only_what_the_model_asked_for_counts(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    files = {
        "history.yaml": SCENARIO.encode(),
        "templates/repo/Makefile": b"log:\n\tgit log --oneline | cat\n",
        "templates/repo/check.sh": b"git fsck\n",
        "templates/repo/.claude/settings.json": json.dumps(HOOKS).encode(),
    }
    (imported,) = import_files(Bundle("history", files), project=project, by=None)
    with playing(*turns(*COMMANDS)) as model:
        content = json.dumps({"targets": [target(kind, model.url)]}).encode()
        import_targets(project, content, "targets.yaml", by=None)
        run_here.run_here(launch(imported.version, targets=[kind]))
    trial = Trial.objects.get()
    assert (trial.error, trial.outcome) == ("", "pass")
    interaction = trial.detail["interaction"]
    found = [*CommandRecord.objects.filter(trial=trial).order_by("n").values_list("subcommand", "exit_code")]
    assert found == OWN, interaction["indirect_by"]
    assert (interaction["ends"], interaction["unrecorded"]) == ("recorded", 0)
    assert "integrity" not in trial.detail
    assert interaction["indirect_by"].get("make") == 1
    assert interaction["indirect_by"].get("check.sh") == 1
    if kind == "claude_code":
        assert interaction["indirect_by"].get("a hook") == len(COMMANDS)
    assert all(
        each is not None for each in CommandRecord.objects.filter(trial=trial).values_list("event", flat=True)
    )
