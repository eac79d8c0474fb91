"""Trials with real processes that do everything wrong: the right outcome, a clear sentence, and the lane goes on."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs.engine import lanes, run_here
from runs.engine.workspace.workspace import own_area
from runs.models import Target
from tests.kept_files import path_of
from tests.runs.carried import GOOD, carried, one, shell_project
from tests.runs.carrying import launch, shell_target, start, suite_of
from tests.runs.processes import pids_with, unique_seconds

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def project() -> Project:
    return shell_project()


def gate(**fields: Any) -> dict[str, Any]:
    return {"criteria": {"gates": [fields]}}


@pytest.mark.spec("llm-tool-test", "Gates run after a time-out too")
def test_a_command_that_never_ends_is_stopped_and_judged(project):
    began = time.monotonic()
    trial = one(
        project, prompt="sleep 1000", limits={"timeout_seconds": 1}, **gate(type="file_exists", path="x")
    )
    assert (trial.outcome, trial.completed, trial.timed_out) == ("fail", False, True)
    assert time.monotonic() - began < 20


def test_a_gigabyte_of_output_is_cut(project):
    trial = one(project, prompt="head -c 1000000000 /dev/zero | tr '\\0' x")
    assert trial.completed is False
    assert any("MB" in note or "output" in note for note in trial.detail["notes"])
    assert sum(artifact.size for artifact in trial.artifacts.all()) < 64 << 20


def test_children_left_behind_are_ended(project):
    seconds = unique_seconds()
    trial = one(project, prompt=f"setsid sleep {seconds} & sleep {seconds} & echo left")
    assert (trial.outcome, trial.answer.strip()) == ("pass", "left")
    assert pids_with(seconds) == []


def test_an_agent_that_cannot_start_is_an_error_of_the_target(project):
    Target.objects.filter(name="shell").delete()
    # A path in the workspace, which only a trial can try.
    shell_target(project, command_template="./no-such-agent {PROMPT}")
    run = launch(suite_of(project, bad=GOOD), targets=["shell"]).runs.get()
    run_here.run_here(run.launch)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "start")
    assert "no-such-agent" in trial.error
    assert "Install it on the worker" in trial.error


def test_a_run_whose_program_is_missing_spends_no_trial(project):
    Target.objects.filter(name="shell").delete()
    shell_target(project, command_template="no-such-agent {PROMPT}")
    run = launch(suite_of(project, bad=GOOD), targets=["shell"]).runs.get()
    run_here.run_here(run.launch)
    run.refresh_from_db()
    assert "There is no program 'no-such-agent' inside the sandbox." in run.error
    assert run.cancelled == run.trials


@pytest.mark.spec("llm-tool-test", "Completed: exit code 0 before the time limit")
def test_an_agent_that_exits_3_has_not_completed_and_is_judged(project):
    trial = one(project, prompt="echo half > out.txt; exit 3", **gate(type="file_exists", path="out.txt"))
    assert (trial.outcome, trial.exit_code, trial.completed) == ("pass", 3, False)


def test_output_that_is_not_utf8_is_kept_as_it_came(project):
    trial = one(project, prompt=r"printf 'caf\351 \000 end'")
    assert trial.outcome == "pass"
    assert trial.answer == "caf\ufffd \ufffd end"
    assert path_of(trial.artifacts.get(name="transcript").sha256).read_bytes() == b"caf\xe9 \x00 end"


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"post": [{"command": "cat $LLM_TOOL_TEST_TRANSCRIPT > copy.txt"}]}, id="post script"),
        pytest.param(gate(type="script", command="grep -q spoken $LLM_TOOL_TEST_TRANSCRIPT"), id="gate"),
    ],
)
def test_commands_that_look_find_the_agents_output_in_a_file(project, asked):
    trial = one(project, prompt="echo spoken", **asked)
    assert trial.outcome == "pass", trial.scores
    assert [script["exit_code"] for script in trial.detail["scripts"]] in ([], [0])


def test_ten_thousand_events_are_all_kept(project):
    script = (
        "i=0; while [ $i -lt 5000 ]; do "
        'echo "{\\"type\\":\\"tool_call\\",\\"id\\":\\"$i\\",\\"name\\":\\"bash\\",\\"command\\":\\"git status $i\\"}"; '
        'echo "{\\"type\\":\\"tool_result\\",\\"id\\":\\"$i\\",\\"output\\":\\"ok\\",\\"exit_code\\":0}"; '
        'i=$((i+1)); done > "$EVENTS"'
    )
    trial = one(project, prompt=script, criteria={"tool": {"binary": "git"}}, record_tool=False)
    assert trial.outcome == "pass", trial.error
    assert trial.transcript.events == 10_000
    assert trial.detail["interaction"]["total_commands"] == 5000
    assert trial.commands.count() == 5000


def test_a_judge_that_answers_prose_is_an_error_and_never_a_low_score(project):
    Target.objects.create(
        project=project,
        name="talker",
        provider="mock",
        definition={"name": "talker", "provider": "mock", "response": "I think it went rather well."},
    )
    rubric = {"criteria": [{"id": "quality", "weight": 1.0}]}
    trial = one(
        project,
        prompt="echo hi",
        criteria={"judge": {"rubric": rubric, "pass_threshold": 0.5, "model": "talker"}},
    )
    assert (trial.outcome, trial.error_kind) == ("error", "judge")
    assert trial.error.endswith(".")
    (judging,) = trial.judgings.all()
    assert judging.score is None
    assert "rather well" in json.dumps(judging.content)


@pytest.mark.parametrize("pattern", ["^(a+)+b$", "^(?=(a+)+b)"], ids=["linear", "with look-ahead"])
def test_a_catastrophic_pattern_does_not_hold_the_lane(project, pattern):
    began = time.monotonic()
    trial = one(
        project,
        prompt="true",
        **gate(
            type="command_output_matches", command="head -c 30000 /dev/zero | tr '\\0' a", pattern=pattern
        ),
    )
    assert trial.outcome in ("fail", "error")
    assert time.monotonic() - began < 15


def test_a_missing_variable_is_named(project, monkeypatch):
    monkeypatch.delenv("EVALHUB_NOT_THERE", raising=False)
    trial = one(project, prompt="true", criteria={"tool": {"env": {"KEY": "${EVALHUB_NOT_THERE}"}}})
    assert (trial.outcome, trial.error_kind) == ("error", "configuration")
    assert "EVALHUB_NOT_THERE" in trial.error


def test_a_failing_setup_is_an_error_and_no_agent_is_started(project):
    trial = one(project, setup=["echo no such luck >&2; exit 4"], prompt="touch started")
    assert (trial.outcome, trial.error_kind) == ("error", "setup")
    assert "exit code 4: no such luck" in trial.error
    assert not trial.artifacts.exists()


def test_a_transcript_that_cannot_be_read_is_an_error_and_is_kept(project, tmp_path):
    (tmp_path / "broken.jsonl").write_text("this isn't a stream at all\n")
    definition = {"name": "tape", "provider": "replay", "path": "broken.jsonl", "parser": "claude_code"}
    Target.objects.create(
        project=project, name="tape", provider="replay", definition=definition, base_folder=str(tmp_path)
    )
    run = launch(suite_of(project, bad=GOOD), targets=["tape"]).runs.get()
    run_here.run_here(run.launch)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "transcript")
    assert (
        path_of(trial.artifacts.get(name="transcript").sha256).read_text() == "this isn't a stream at all\n"
    )


def test_a_mistake_of_evalhub_itself_is_an_error_with_its_traceback(project):
    version = suite_of(project, bad=GOOD)
    scenario_version = version.entries.get().scenario_version
    run = launch(version, targets=["shell"]).runs.get()
    scenario_version.content = {"key": "bad", "prompt": "true", "no_such_field": 1}
    scenario_version.save()
    start(run)
    lanes.run_lane(run.pk)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "internal")
    assert "no_such_field" in trial.detail["traceback"]


def test_nothing_is_left_in_the_work_directory(project, settings):
    one(project, prompt="mkdir -p deep/er; touch deep/er/file; chmod 000 deep")
    assert list(own_area(settings.WORK_DIR).iterdir()) == []


def test_equal_files_of_trials_are_kept_once(project):
    trials = carried(project, first={"prompt": "echo same"}, second={"prompt": "echo same"})
    hashes = {trial.artifacts.get(name="transcript").sha256 for trial in trials.values()}
    assert len(hashes) == 1


def test_a_stream_of_another_program_is_an_error_and_passes_no_gate(project, tmp_path):
    session = tmp_path / "rollout.jsonl"
    session.write_text('{"type": "session_meta", "payload": {}}\n{"type": "response_item", "payload": {}}\n')
    shell_target(
        project, name="played", provider="replay", command_template=None, path=str(session), parser="codex"
    )
    version = suite_of(project, played={**GOOD, **gate(type="no_transcript_errors")})
    run = launch(version, targets=["played"]).runs.get()
    run_here.run_here(run.launch)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "transcript")
    assert "The output isn't a stream of Codex" in trial.error
    assert "response_item, session_meta" in trial.error
