"""Stored trials are counted again by the rules of this release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import RULES_VERSION
from runs.compare.comparison import incomparable
from runs.compare.measure_changes import compare_run_measures
from runs.engine.stored_trials.recounting import recount, runs_to_recount
from runs.models import Artifact, CommandRecord, Run, RunMeasure, SearchEntry, TranscriptRecord, Trial
from runs.models.trial import transcript_row
from runs.results.counting import compared_by, ends_of_run, rules_of_run
from runs.results.files.artifacts import keep_content
from scenarios.models import ScenarioVersion
from tests.builders import close, make_project, make_run, make_suite, make_target, make_trial, score
from tests.commands.calling import call

pytestmark = pytest.mark.django_db
STREAMS = Path(__file__).parents[2] / "files/streams"
OLD: dict[str, Any] = {
    "available": True,
    "source": "events",
    "total_commands": 2,
    "error_count": 0,
    "error_rate": 0.0,
    "first_try_success_rate": 1.0,
    "unknown_exit": 1,
    "subcommands": [],
}
PIPED = Transcript(
    events=(
        Event("tool_call", "1", "shell", "tool list | head -1"),
        Event("tool_result", "1", output="a", exit_code=0),
        Event("tool_call", "2", "shell", "tool add x"),
        Event("tool_result", "2", output="error: no such x", exit_code=2),
    ),
    source="events",
)


def old_run(*transcripts: Transcript | None, provider: str = "mock") -> Run:
    """Return a closed run of a release without versions of rules, with a trial for each transcript."""
    project = make_project()
    version = make_suite(project, ("create",))
    for each in ScenarioVersion.objects.all():
        each.content["criteria"]["tool"] = {"binary": "tool"}
        each.save()
    run = make_run(version, target=make_target(project, provider=provider))
    for transcript in transcripts:
        trial = make_trial(
            run,
            scores=[
                score("interaction", "error_rate", 0.0),
                score("interaction", "completed", 1.0),
                score("gates", "file_exists", 1.0, True),
            ],
            detail={"interaction": dict(OLD)},
        )
        CommandRecord.objects.create(trial=trial, n=0, line="tool list", exit_code=0)
        if transcript:
            row = transcript_row(trial.pk, transcript)
            TranscriptRecord.objects.create(trial=trial, **{k: v for k, v in row.items() if k != "trial"})
    close(run)
    Run.objects.filter(pk=run.pk).update(recounted=0, counting={})
    run.refresh_from_db()
    return run


def test_events_give_the_new_figures() -> None:
    run = old_run(PIPED)
    done = recount()
    assert (done.runs, done.trials, done.kept) == (1, 1, 0)
    trial = Trial.objects.get()
    metrics = trial.detail["interaction"]
    assert (metrics["rules"], metrics["known"], metrics["unknown_exit"], metrics["error_rate"]) == (
        RULES_VERSION,
        1,
        1,
        1.0,
    )
    assert [(each.line, each.exit_code, each.end) for each in trial.commands.all()] == [
        ("tool list", None, "unknown"),
        ("tool add x", 2, "reported"),
    ]
    layers = [(row["layer"], row["name"]) for row in trial.scores]
    assert ("interaction", "completed") in layers and ("gates", "file_exists") in layers
    assert trial.outcome == "pass"
    rate = RunMeasure.objects.get(
        run=run, scenario=None, measure__layer="interaction", measure__name="error_rate"
    )
    assert rate.mean == 1.0
    run.refresh_from_db()
    assert (rules_of_run(run.counting), ends_of_run(run.counting)) == (str(RULES_VERSION), "reported")


def test_a_second_time_changes_nothing() -> None:
    old_run(PIPED)
    recount()
    before = _stored()
    assert not runs_to_recount().exists()
    assert recount().trials == 0 and _stored() == before


def test_an_interrupted_recount_goes_on() -> None:
    run = old_run(PIPED, PIPED, PIPED)
    with pytest.raises(KeyboardInterrupt):
        recount(batch_done=_interrupt, batch=1)
    counted = Trial.objects.filter(detail__interaction__rules=RULES_VERSION).count()
    assert counted == 1 and list(runs_to_recount()) == [run]
    assert recount().trials == 2
    run.refresh_from_db()
    assert rules_of_run(run.counting) == str(RULES_VERSION) and not runs_to_recount().exists()


def test_an_interruption_leaves_no_comparison_out() -> None:
    before = old_run(PIPED)
    after = make_run(before.suite_version, target=before.target, baseline=before)
    make_trial(after, detail={"interaction": dict(OLD)})
    close(after)
    Run.objects.filter(pk=after.pk).update(recounted=0, counting={}, verdict="regressed")
    with pytest.raises(KeyboardInterrupt):
        recount(progress=lambda done, of: _interrupt() if done == of else None)
    recount()
    after.refresh_from_db()
    assert after.verdict != "regressed" and after.baseline == before


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_trials_without_events_keep_figures_and_rules() -> None:
    run = old_run(None)
    assert recount().kept == 1
    run.refresh_from_db()
    assert Trial.objects.get().detail["interaction"] == OLD
    assert rules_of_run(run.counting) == "1" and not runs_to_recount().exists()


def test_raw_output_is_read_again() -> None:
    run = old_run(PIPED, provider="codex")
    item = {
        "id": "i1",
        "type": "command_execution",
        "command": "tool add y",
        "aggregated_output": "bad",
        "exit_code": 3,
        "status": "failed",
    }
    raw = json.dumps({"type": "item.completed", "item": item}).encode() + b"\n"
    kept = keep_content("transcript", raw)
    Artifact.objects.create(trial=Trial.objects.get(), name="transcript", sha256=kept.sha256, size=kept.size)
    recount()
    trial = run.trial_set.get()
    assert [each.line for each in trial.commands.all()] == ["tool add y"]
    events = trial.transcript.unpack().events
    assert events[trial.commands.get().event or 0].command == "tool add y"
    assert SearchEntry.objects.get(trial=trial).commands == "tool add y"


def test_a_stored_record_is_counted_again() -> None:
    old_run(PIPED)
    trial = Trial.objects.get()
    trial.detail["interaction"] |= {"source": "recorded", "rules": 1}
    trial.save()
    asker = {"pid": 9, "argv": ["bash", "-c", "tool list | head -1"], "exe": "/usr/bin/bash"}
    agent = {"pid": 2, "argv": ["codex", "exec"], "exe": "/opt/bin/codex"}
    call = {"n": 1, "how": "file", "path": "/usr/bin/tool", "argv": ["tool", "list"], "start": 1.0, "exit": 3}
    record = json.dumps({**call, "asker": asker, "parents": [agent], "seconds": 0.5}).encode()
    kept = keep_content("tool-calls", record)
    Artifact.objects.create(trial=trial, name="tool-calls", sha256=kept.sha256, size=kept.size)
    assert recount().trials == 1
    trial.refresh_from_db()
    metrics = trial.detail["interaction"]
    assert (metrics["source"], metrics["rules"], metrics["error_count"]) == ("recorded", RULES_VERSION, 1)
    assert metrics["reported"]["source"] == "events"
    assert [(each.line, each.exit_code, each.end, each.seconds) for each in trial.commands.all()] == [
        ("tool list", 3, "recorded", 0.5)
    ]


def test_recorded_trials_without_a_stored_record_keep_their_figures() -> None:
    old_run(PIPED)
    trial = Trial.objects.get()
    trial.detail["interaction"] |= {"source": "recorded", "rules": 1}
    trial.save()
    assert recount().kept == 1


def test_outcomes_stay_of_the_rules_that_decided_them() -> None:
    before = old_run(PIPED)
    for each in ScenarioVersion.objects.all():
        each.content["criteria"]["gates"] = [{"type": "no_transcript_errors"}]
        each.save()
    recount()
    before.refresh_from_db()
    trial = before.trial_set.get()
    assert trial.detail["interaction"]["decided_by"] == "rules 1"
    after = make_run(before.suite_version, target=before.target)
    metrics = {name: value for name, value in trial.detail["interaction"].items() if name != "decided_by"}
    make_trial(after, scores=trial.scores, detail={"interaction": metrics})
    close(after)
    assert incomparable(before, after) == {"create": ("gate_counting",)}
    compared = compare_run_measures(before, after)
    measured = {each.rule.name for each in (*compared.headline, *compared.others) if each.scenarios}
    assert "interaction/error_rate" in measured and "trial/pass" not in measured
    assert compared.ends == ("reported",)
    assert "the agent reported" in compared_by(before.counting, after.counting)


def test_raw_output_is_read_again_with_what_was_cut() -> None:
    run = old_run(PIPED, provider="opencode")
    run.trial_set.update(timed_out=True)
    trial = run.trial_set.get()
    for name, file in (("transcript", "opencode_cut.jsonl"), ("session", "opencode_cut_export.json")):
        kept = keep_content(name, (STREAMS / file).read_bytes().replace(b"./taskmgr", b"tool"))
        Artifact.objects.create(trial=trial, name=name, sha256=kept.sha256, size=kept.size)
    recount()
    found = [(each.subcommand, each.exit_code) for each in trial.commands.all()]
    assert found == [("list", 1), ("creat", None)]


def test_the_command_says_what_it_did() -> None:
    old_run(PIPED, None)
    done = call("recompute")
    assert f"Counted 1 trial of 1 run again by rules {RULES_VERSION}" in done.out
    assert "1 trial had no stored events" in done.out and "1 of 1 run." in done.err
    assert f"Every run is counted by rules {RULES_VERSION}." in call("recompute").out


def _stored() -> Any:
    return (
        list(Trial.objects.order_by("pk").values("scores", "detail", "outcome")),
        list(CommandRecord.objects.order_by("trial", "n").values("line", "exit_code", "end", "seconds")),
        list(RunMeasure.objects.order_by("measure", "scenario").values("measure", "n", "mean", "m2")),
    )
