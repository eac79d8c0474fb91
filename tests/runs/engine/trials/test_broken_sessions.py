"""Trials whose agent was cut off by its model's service, or whose program crashed; the gates don't decide that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.models import Run, Target, Trial
from tests.model_server import Failure, serving
from tests.runs.carrying import launch, shell_target, suite_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

OUTAGES = Path(__file__).parents[3] / "files/outages"
STREAMS = Path(__file__).parents[3] / "files/streams"
KINDS = ["codex", "claude_code", "opencode"]
AGENT = """#!/bin/sh
case "$1" in --version) echo "1.2.3"; exit 0;; export) exit 1;; esac
cat > /dev/null
echo done > out.txt
{script}
"""
GATES = {
    "passing": {"gates": [{"type": "file_exists", "path": "out.txt"}]},
    "failing": {"gates": [{"type": "file_exists", "path": "none.txt"}]},
}


def trials(
    project: Project, folder: Path, kind: str, script: str, **limits: Any
) -> dict[str, tuple[str, str, str]]:
    """Return outcome, kind of error and error of trials whose agent does this, by what their gate says."""
    program = folder / "agent"
    program.write_text(AGENT.format(script=script))
    program.chmod(0o755)
    definition = {"name": "coder", "provider": kind, "executable": str(program), "base_url": "http://127.0.0.1:9/v1"}  # fmt: skip
    definition |= {"model": "m"} if kind == "opencode" else {}
    Target.objects.create(project=project, name="coder", provider=kind, definition=definition)
    return carried(project, "coder", **limits)


def carried(project: Project, target: str, **limits: Any) -> dict[str, tuple[str, str, str]]:
    contents = {key: {"criteria": gates, **({"limits": limits} if limits else {})} for key, gates in GATES.items()}  # fmt: skip
    run_here.run_here(launch(suite_of(project, **contents), targets=[target]))
    found = {trial.scenario.key: trial for trial in Trial.objects.select_related("scenario")}
    for key, trial in found.items():
        if trial.scores:
            # Gates are shown in any case.
            assert [s["passed"] for s in trial.scores if s["layer"] == "gates"] == [key == "passing"]
    return {key: (trial.outcome, trial.error_kind, trial.error) for key, trial in found.items()}


def printed(path: Path, to: str = "") -> str:
    """Return a command that prints a file, which the agent's sandbox doesn't show."""
    return f"cat {to} <<'END_OF_FILE'\n{path.read_text()}END_OF_FILE\n"


def both(found: dict[str, tuple[str, str, str]]) -> tuple[str, str, str]:
    """Return what is the same of both trials, whatever their gates said."""
    assert found["passing"] == found["failing"]
    return found["passing"]


@pytest.mark.parametrize("moment", ["before", "amid", "after"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_cut_the_session_makes_an_error(project, tmp_path, kind, moment):
    stream = OUTAGES / kind / f"{moment}-401.jsonl"
    outcome, error_kind, error = both(trials(project, tmp_path, kind, f"{printed(stream)}exit 1"))
    assert (outcome, error_kind) == ("error", "endpoint")
    assert "was cut off by its model's service: " in error
    assert "The script asks for 401." in error
    assert error.endswith("Check the target's key.")
    run = Run.objects.get()
    assert (run.errors, run.failed, run.passed) == (2, 0, 0)


@pytest.mark.slow
def test_what_opencode_was_repeating_when_its_time_was_up_is_an_error(project, tmp_path):
    log = OUTAGES / "opencode/amid-429.log"
    folder = "$XDG_DATA_HOME/opencode/log"
    kept = printed(log, f'> "{folder}/opencode.log"')
    script = f'mkdir -p "{folder}"\n{kept}exec sleep 60'
    found = trials(project, tmp_path, "opencode", script, timeout_seconds=1.2)
    outcome, error_kind, error = both(found)
    assert (outcome, error_kind) == ("error", "endpoint")
    assert "The script asks for 429." in error


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_the_time_limit_is_the_trials_own_end(project, tmp_path, kind):
    stream = STREAMS / f"{kind}_cut.jsonl"
    found = trials(project, tmp_path, kind, f"{printed(stream)}exec sleep 60", timeout_seconds=1.2)
    assert found == {"passing": ("pass", "", ""), "failing": ("fail", "", "")}
    assert not any(trial.completed for trial in Trial.objects.all())


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_request_and_an_exit_code_are_the_trials_own_end(project, tmp_path, kind):
    found = trials(project, tmp_path, kind, f"{printed(OUTAGES / kind / 'amid-400.jsonl')}exit 1")
    assert found == {"passing": ("pass", "", ""), "failing": ("fail", "", "")}


def test_a_failure_after_the_final_result_leaves_it_to_the_gates(project, tmp_path):
    stream = OUTAGES / "claude_code/answered-500.jsonl"
    found = trials(project, tmp_path, "claude_code", f"{printed(stream)}exit 1")
    assert found == {"passing": ("pass", "", ""), "failing": ("fail", "", "")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_without_its_closing_event_is_a_crash(project, tmp_path, kind):
    stream = STREAMS / f"{kind}_cut.jsonl"
    script = f"{printed(stream)}echo 'panicked at main.rs' >&2; exit 101"
    outcome, error_kind, error = both(trials(project, tmp_path, kind, script))
    assert (outcome, error_kind) == ("error", "crash")
    assert "its stream has no closing event. Standard error: panicked at main.rs." in error


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_that_evalhub_did_not_send_is_a_crash(project, tmp_path, kind):
    script = f"{printed(STREAMS / f'{kind}_cut.jsonl')}kill -SEGV $$"
    outcome, error_kind, error = both(trials(project, tmp_path, kind, script))
    assert (outcome, error_kind) == ("error", "crash")
    assert "crashed: SIGSEGV ended it" in error


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo done > out.txt; kill -KILL $$", ("error", "crash")),
        ("echo done > out.txt; exit 3", ("pass", "")),
    ],
)
def test_a_command_crashes_by_a_signal_only(project, command, expected):
    target = shell_target(project, command_template=f"sh -c '{command}'")
    found = carried(project, target.name)
    assert found["passing"][:2] == expected


def test_a_model_that_asks_to_wait_beyond_the_limit_is_an_error_with_its_own_seconds(project, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "sk-of-the-tests-0123456789")
    with serving() as models:
        models.script.turns = [Failure(429, headers=(("retry-after", "3600"),))] * 9
        definition = {"name": "model", "provider": "litellm", "model": "openai/gpt-4o-mini", "base_url": f"{models.url}/v1"}  # fmt: skip
        Target.objects.create(project=project, name="model", provider="litellm", definition=definition)
        outcome, error_kind, error = _without_seconds(carried(project, "model", timeout_seconds=8))
    assert (outcome, error_kind) == ("error", "endpoint")
    assert "HTTP 429" in error and "wait 3600 s (Retry-After)" in error
    assert all(0 < (trial.seconds or 0) < 8 for trial in Trial.objects.all())
    assert not any(trial.timed_out for trial in Trial.objects.all())


def _without_seconds(found: dict[str, tuple[str, str, str]]) -> tuple[str, str, str]:
    assert {each[:2] for each in found.values()} == {found["passing"][:2]}
    return found["passing"]
