"""What the real agents print when their model's service fails, and what trials make of it.

With `EVALHUB_TEST_OUTAGES=tests/files/outages` the streams are kept as specimens.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runs.engine import run_here
from runs.models import Trial
from runs.targets.agents.session_end import broken_by
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.real_agents.outages import MOMENTS, OWN, faults_to_play, keep_specimen, play
from tests.real_agents.real import AGENTS, COMMANDS, KEY, TASKMGR, playing
from tests.real_agents.test_runs import target
from tests.runs.carrying import launch
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

FOLDER = os.environ.get("EVALHUB_TEST_OUTAGES", "")
"""Where to keep new specimens of every fault; a few are tried without one."""
AT_ONCE = 3
SCENARIO = """
name: {name}
target: {{binary: taskmgr}}
template_folder: repo
task: {{prompt: Create a task.}}
evaluation:
  gates:
    - {{type: file_exists, path: {path}}}
"""

pytestmark = pytest.mark.parametrize("kind", AGENTS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_session_that_its_service_cut_is_an_error_with_its_words(
    tmp_path: Path, kind: str, moment: str
) -> None:
    def played(fault: str | int) -> None:
        folder = tmp_path / str(fault)
        recording = play(kind, moment, fault, folder)
        if FOLDER:
            keep_specimen(Path(FOLDER) / kind, f"{moment}-{fault}", recording, folder / "scratch")
        broken = broken_by(recording)
        assert broken is not None, (fault, recording)
        assert broken.kind == "endpoint"
        # Codex has words of its own for 500, and Claude Code's of a missing model have no status.
        if isinstance(fault, int) and (kind, fault) != ("codex", 500):
            assert str(fault) in broken.sentence

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(played, faults_to_play(kind, moment, every=bool(FOLDER))))


def test_a_request_that_the_service_calls_wrong_is_the_trials_own_end(tmp_path: Path, kind: str) -> None:
    recording = play(kind, "amid", OWN, tmp_path / "own")
    if FOLDER:
        keep_specimen(Path(FOLDER) / kind, f"amid-{OWN}", recording, tmp_path / "own/scratch")
    assert recording.exit_code == 1
    assert broken_by(recording) is None


@pytest.mark.django_db(transaction=True)
def test_the_verdict_is_the_same_whatever_the_gates_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    files = {
        "done.yaml": SCENARIO.format(name="done", path="tasks.txt").encode(),
        "missing.yaml": SCENARIO.format(name="missing", path="missing.txt").encode(),
        "templates/repo/taskmgr": TASKMGR.encode(),
    }
    (imported,) = import_files(Bundle("outage", files), project=project, by=None)
    with playing({"command": f"sh {COMMANDS[3]}"}, {"fault": 401}) as model:
        content = json.dumps({"targets": [target(kind, model.url)]}).encode()
        import_targets(project, content, "targets.yaml", by=None)
        run_here.run_here(launch(imported.version, targets=[kind]))
    trials = {trial.scenario.key: trial for trial in Trial.objects.select_related("scenario")}
    assert {trial.outcome for trial in trials.values()} == {"error"}
    assert {trial.error_kind for trial in trials.values()} == {"endpoint"}
    assert all("401" in trial.error for trial in trials.values())
    shown = {key: [s["passed"] for s in t.scores if s["layer"] == "gates"] for key, t in trials.items()}
    assert shown == {"done": [True], "missing": [False]}
