"""Trials with real processes that do everything wrong: the right outcome, a clear sentence, and the lane goes on."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs import lanes, launching
from runs.artifacts import path_of
from runs.models import Artifact, Run, Target, Trial
from tests.builders import make_project
from tests.runs.carrying import launch, shell_target, suite_of
from tests.runs.processes import pids_with

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = {"prompt": "echo fine"}


@pytest.fixture
def project() -> Project:
    made = make_project("default")
    shell_target(made)
    return made


def carried(project: Project, **contents: dict[str, Any]) -> dict[str, Trial]:
    """Carry these scenarios one after another in one lane, and then a good one; return the trials by key."""
    version = suite_of(project, **contents, zz_afterwards=GOOD)
    run = launch(version, targets=["shell"]).runs.get()
    launching.carry_here(run.launch)
    run.refresh_from_db()
    assert run.state == "finished", run.error
    trials = {trial.scenario.key: trial for trial in run.trial_set.select_related("scenario")}
    last = trials.pop("zz_afterwards")
    assert (last.outcome, last.answer.strip()) == ("pass", "fine"), last.error
    return trials


def one(project: Project, **content: Any) -> Trial:
    (trial,) = carried(project, bad=content).values()
    return trial


def gate(**fields: Any) -> dict[str, Any]:
    return {"criteria": {"gates": [fields]}}


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
    # Passes over other databases run at the same time.
    word = f"98765.{os.getpid()}"
    trial = one(project, prompt=f"setsid sleep {word} & sleep {word} & echo left")
    assert (trial.outcome, trial.answer.strip()) == ("pass", "left")
    assert pids_with(word) == []


def test_an_agent_that_cannot_start_is_an_error_of_the_target(project):
    Target.objects.filter(name="shell").delete()
    shell_target(project, command_template="no-such-agent {PROMPT}")
    run = launch(suite_of(project, bad=GOOD), targets=["shell"]).runs.get()
    launching.carry_here(run.launch)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "start")
    assert "no-such-agent" in trial.error
    assert "Install the program on the worker" in trial.error


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
        pytest.param({"post": [{"command": "cat $LLM_TOOL_TEST_TRANSCRIPT > told.txt"}]}, id="post script"),
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
    trial = one(project, prompt=script, criteria={"tool": {"binary": "git"}})
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
    (tmp_path / "broken.jsonl").write_text("this is no stream at all\n")
    definition = {"name": "tape", "provider": "replay", "path": "broken.jsonl", "parser": "claude_code"}
    Target.objects.create(
        project=project, name="tape", provider="replay", definition=definition, base_folder=str(tmp_path)
    )
    run = launch(suite_of(project, bad=GOOD), targets=["tape"]).runs.get()
    launching.carry_here(run.launch)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "transcript")
    assert path_of(trial.artifacts.get(name="transcript").sha256).read_text() == "this is no stream at all\n"


def test_a_mistake_of_evalhub_itself_is_an_error_with_its_traceback(project):
    version = suite_of(project, bad=GOOD)
    scenario_version = version.entries.get().scenario_version
    run = launch(version, targets=["shell"]).runs.get()
    scenario_version.content = {"key": "bad", "prompt": "true", "no_such_field": 1}
    scenario_version.save()
    Run.objects.filter(pk=run.pk).update(state="running")
    lanes.work(run.pk)
    trial = run.trial_set.get()
    assert (trial.outcome, trial.error_kind) == ("error", "internal")
    assert "no_such_field" in trial.detail["traceback"]


def everything_stored(trial: Trial) -> bytes:
    """Return all that is kept of a trial, files included and archives opened."""
    import gzip

    rows = [
        Trial.objects.filter(pk=trial.pk).values().get(),
        *trial.commands.values(),
        *trial.judgings.values(),
    ]
    text = "".join(str(row) for row in rows).encode() + str(trial.transcript.unpack()).encode()
    for artifact in Artifact.objects.filter(trial=trial):
        content = path_of(artifact.sha256).read_bytes()
        text += gzip.decompress(content) if artifact.media_type == "application/gzip" else content
    return text


def test_a_secret_is_masked_wherever_it_is_stored(project, monkeypatch):
    secret = "hunter2-and-more"
    monkeypatch.setenv("TOOL_KEY", secret)
    script = (
        'echo "key $TOOL_KEY"; echo "$TOOL_KEY" > left.txt; '
        'printf \'{"type":"tool_call","id":"1","name":"bash","command":"git push %s"}\\n\' "$TOOL_KEY" > "$EVENTS"'
    )
    criteria = {
        "tool": {"binary": "git", "env": {"TOOL_KEY": "${TOOL_KEY}"}},
        "gates": [
            {
                "type": "command_output_contains",
                "command": "cat left.txt; echo $TOOL_KEY >&2",
                "substring": "no",
            }
        ],
        "scripts": [{"name": "look", "command": "cat left.txt"}],
    }
    trial = one(project, prompt=script, criteria=criteria, post=[{"command": "echo $TOOL_KEY; exit 1"}])
    stored = everything_stored(trial)
    assert b"[REDACTED]" in stored
    assert secret.encode() not in stored
    assert {"events", "transcript", "workspace"} <= set(trial.artifacts.values_list("name", flat=True))


def test_a_secret_in_an_error_is_masked(project, monkeypatch):
    monkeypatch.setenv("TOOL_KEY", "hunter2-and-more")
    trial = one(
        project,
        setup=["echo $TOOL_KEY >&2; exit 1"],
        prompt="true",
        criteria={"tool": {"env": {"TOOL_KEY": "${TOOL_KEY}"}}},
    )
    assert "[REDACTED]" in trial.error
    assert "hunter2" not in trial.error


def test_a_secret_of_the_judge_is_masked(project, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "judge-key-123456")
    definition = {
        "name": "leaky",
        "provider": "cli",
        "command_template": "echo the key is $JUDGE_KEY",
        "env": {"JUDGE_KEY": "${{ JUDGE_KEY }}"},
    }
    Target.objects.create(project=project, name="leaky", provider="cli", definition=definition)
    rubric = {"criteria": [{"id": "quality", "weight": 1.0}]}
    trial = one(
        project,
        prompt="echo hi",
        criteria={"judge": {"rubric": rubric, "pass_threshold": 0.5, "model": "leaky"}},
    )
    stored = everything_stored(trial)
    assert b"the key is" in stored
    assert b"judge-key-123456" not in stored


def test_nothing_is_left_in_the_work_directory(project, settings):
    one(project, prompt="mkdir -p deep/er; touch deep/er/file; chmod 000 deep")
    assert not list(settings.WORK_DIR.glob("trial-*"))


def test_equal_files_of_trials_are_kept_once(project):
    trials = carried(project, first={"prompt": "echo same"}, second={"prompt": "echo same"})
    hashes = {trial.artifacts.get(name="transcript").sha256 for trial in trials.values()}
    assert len(hashes) == 1
