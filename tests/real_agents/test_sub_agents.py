"""What sub-agents do counts: their commands by the record, their events and tokens by their files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.engine import run_here
from runs.models import CommandRecord, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import read_path
from scenarios.imports import import_files
from tests.builders import make_project
from tests.real_agents.real import KEY, playing
from tests.real_agents.test_runs import suite, target
from tests.runs.carrying import launch
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

pytestmark = pytest.mark.xdist_group("trials")
"""In one process, which makes a database and loads evalhub's pages once."""
# fmt: off
ASKING: dict[str, list[dict[str, Any]]] = {
    "codex": [{"tool": "multi_agent_v1/spawn_agent", "arguments": {"message": "SUBTASK: make a task"}}, {"command": "sleep 2"}],
    "opencode": [{"tool": "task", "arguments": {"description": "sub", "prompt": "SUBTASK: make a task", "subagent_type": "general"}}],
    "gemini_cli": [{"tool": "invoke_agent", "arguments": {"agent_name": "generalist", "prompt": "SUBTASK: make a task"}}],
    "qwen_code": [
        {
            "tool": "agent",
            "arguments": {
                "description": "sub",
                "prompt": "SUBTASK: make a task",
                "subagent_type": "general-purpose",
            },
        },
        {"command": "until grep -q scripts tasks.txt; do sleep 0.1; done"},
    ],
}
# fmt: on
SUB = [{"command": "./taskmgr creat"}, {"command": "./taskmgr create 'scripts system'"}, {"text": "made"}]


@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "from the files"])
@pytest.mark.django_db(transaction=True)
def test_what_sub_agents_do_counts(kind, record, tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    suite(tmp_path / "taskmgr")
    if not record:
        file = tmp_path / "taskmgr/create-task.yaml"
        file.write_text(file.read_text() + "record_tool: false\n")
    [imported] = import_files(read_path(tmp_path / "taskmgr"), project=project, by=None)
    steps = [{"command": "./taskmgr --help"}, *ASKING[kind], {"command": "./taskmgr list"}, {"text": "done"}]
    with playing(*steps, sessions=[{"when": "SUBTASK", "turns": SUB}]) as model:
        import_targets(
            project, json.dumps({"targets": [target(kind, model.url)]}).encode(), "targets.yaml", by=None
        )
        run_here.run_here(launch(imported.version, targets=[kind]))
    trial = Trial.objects.get()
    assert (trial.error, trial.outcome) == ("", "pass")
    found = CommandRecord.objects.filter(trial=trial).values_list("subcommand", "exit_code")
    assert sorted(found) == [("creat", 1), ("create", 0), ("help", 0), ("list", 0)]
    assert trial.detail["interaction"]["ends"] == ("recorded" if record else "reported")
    # The scripted model takes 100 and 20 tokens for each turn of both; some programs ask once more.
    assert len(model.seen) >= len(steps) + len(SUB)
    assert (trial.tokens_in, trial.tokens_out) == (100 * len(model.seen), 20 * len(model.seen))
    events = trial.transcript.unpack().events
    agents = {event.metadata.get("agent") for event in events if event.type == "tool_call"}
    assert len(agents - {None}) == 1


@pytest.mark.django_db(transaction=True)
def test_codex_tokens_up_to_the_time_limit_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    suite(tmp_path / "taskmgr")
    file = tmp_path / "taskmgr/create-task.yaml"
    file.write_text(file.read_text() + "run: {timeout_secs: 6}\n")
    [imported] = import_files(read_path(tmp_path / "taskmgr"), project=project, by=None)
    with playing(
        {"command": "./taskmgr list"}, {"command": "sleep 60; ./taskmgr list"}, {"text": "late"}
    ) as model:
        import_targets(
            project, json.dumps({"targets": [target("codex", model.url)]}).encode(), "targets.yaml", by=None
        )
        run_here.run_here(launch(imported.version, targets=["codex"]))
    trial = Trial.objects.get()
    assert trial.timed_out
    # Codex writes a turn's tokens down after its command, so the last turn may be missing.
    assert (trial.tokens_in, trial.tokens_out) in [(100, 20), (200, 40)]
    assert CommandRecord.objects.filter(trial=trial).count() == 1
