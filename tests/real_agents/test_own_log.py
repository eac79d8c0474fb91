"""Generated shell sessions under real agents: evalhub's counts are those of the tool's own log."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from runs.engine import run_here
from runs.models import Artifact, Trial
from runs.results.files.artifacts import open_stored
from runs.results.files.workspace_archive import kept_files
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.layer1.own_log import counts, install, read_log
from tests.layer1.shell_sessions import Generator
from tests.layer1.test_events import wrong_ends
from tests.real_agents.real import AGENTS, KEY, playing, turns
from tests.real_agents.test_runs import target
from tests.runs.carrying import launch
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

SCENARIO = """
name: session
target: {binary: ./mt}
template_folder: repo
task: {prompt: Run the commands.}
evaluation:
  gates: [{type: file_exists, path: f.txt}]
"""
LINES = 12
pytestmark = pytest.mark.xdist_group("trials")
"""In one process, which makes a database and loads evalhub's pages once."""


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.django_db(transaction=True)
def test_counts_are_those_of_the_tools_own_log(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    tool = install(tmp_path, Path("/workspace/log.jsonl"))
    files = {
        "session.yaml": SCENARIO.encode(),
        "templates/repo/mt": tool.read_bytes(),
        "templates/repo/f.txt": b"x\n",
        "templates/repo/sub/empty": b"",
    }
    (imported,) = import_files(Bundle("session", files), project=project, by=None)
    lines = Generator(Random(f"{kind} 3")).session(LINES)
    with playing(
        *turns(*(f"chmod +x mt; {line}" if n == 0 else line for n, line in enumerate(lines)))
    ) as model:
        import_targets(
            project, json.dumps({"targets": [target(kind, model.url)]}).encode(), "targets.yaml", by=None
        )
        run_here.run_here(launch(imported.version, targets=[kind]))
    trial = Trial.objects.get()
    assert (trial.error, trial.outcome) == ("", "pass")
    log = tmp_path / "log.jsonl"
    with open_stored(Artifact.objects.get(trial=trial, name="workspace").sha256) as archive:
        log.write_bytes(
            next(
                content
                for file, content in kept_files(archive, lambda file: file.path == "log.jsonl")
                if content
            )
        )
    found = trial.detail["interaction"]
    recorded = {
        "calls": found["total_commands"],
        "failed": found["error_count"],
        "helps": found["help_seeking"],
    }
    assert recorded == counts(read_log(log)), lines
    assert (found["ends"], found["indirect"]) == ("recorded", 0)
    transcript = trial.transcript.unpack()
    by_events = analyse(transcript, Tool(binary="./mt"), completed=True)
    assert wrong_ends(by_events, tmp_path, transcript.events) == [], lines
