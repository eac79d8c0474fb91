"""`manage.py prune`: what goes and what stays."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from evalhub.teams.models import AuditEvent
from runs.models import (
    Artifact,
    Baseline,
    Change,
    CommandRecord,
    ReassessedTrial,
    Run,
    RunSlot,
    SubcommandMeasure,
    TranscriptRecord,
    Trial,
)
from runs.results.files.artifacts import keep_content
from runs.results.files.retention import RUNS_AT_ONCE, space_taken
from tests.builders import make_project, make_run, make_suite, make_trial
from tests.kept_files import path_of
from tests.shell_events import shell
from tests.trial_parts import make_command, make_transcript

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def artifacts(settings, tmp_path) -> Path:
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"
    return settings.ARTIFACTS_DIR


def prune(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("prune", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def old_run(days: int = 100, content: bytes = b"raw", **changes: Any) -> Run:
    """Return a run of so many days ago with one trial that has everything."""
    version = make_suite(changes.pop("project", None) or make_project())
    run = make_run(version, created=timezone.now() - timedelta(days=days), **changes)
    trial = make_trial(run, outcome="fail")
    make_transcript(trial, shell("ls"))
    make_command(trial, 1, "ls")
    kept = keep_content("transcript", content)
    Artifact.objects.create(trial=trial, **vars(kept))
    aged(path_of(kept.sha256))
    return run


def aged(path: Path) -> None:
    two_hours_ago = time.time() - 7200
    os.utime(path, (two_hours_ago, two_hours_ago))


def test_transcripts_and_files_of_old_runs_go_and_results_stay(artifacts):
    run = old_run()
    counts = prune("--older-than", "90")
    assert (counts["runs"], counts["transcripts"], counts["artifacts"], counts["files"]) == (1, 1, 1, 1)
    assert not TranscriptRecord.objects.exists()
    assert not Artifact.objects.exists()
    assert [path for path in artifacts.rglob("*") if path.is_file()] == []
    trial = Trial.objects.get(run=run)
    assert trial.outcome == "fail" and trial.scores and trial.commands.count() == 1


def test_a_dry_run_reports_the_same_and_removes_nothing():
    old_run()
    dry = prune("--older-than", "90", "--dry-run")
    assert (dry["transcripts"], dry["artifacts"], dry["files"], dry["bytes"]) == (1, 1, 1, 3)
    assert TranscriptRecord.objects.exists() and Artifact.objects.exists()
    assert not AuditEvent.objects.filter(action="retention.prune").exists()
    assert dry.pop("space")["stored files"] == 3
    assert dry["transcript_bytes"] == len(TranscriptRecord.objects.get().data)
    assert prune("--older-than", "90") == {**dry, "dry_run": False}


def test_a_dry_run_says_in_bytes_what_would_go_and_what_takes_the_space():
    run = old_run(content=b"raw" * 500)
    old_run(content=b"raw" * 500, project=run.project, days=1)
    out = StringIO()
    call_command("prune", "--older-than", "90", "--dry-run", stdout=out)
    first, heading, *largest = out.getvalue().splitlines()
    size = len(TranscriptRecord.objects.first().data)
    assert first == (
        f"Would delete 1 transcript ({size} B in the database) and 1 artifact of 1 run, and 0 unused files (0 B)."
    )
    assert heading == "Space is taken by:"
    assert "     1.5 kB  stored files" in largest


def test_tables_have_their_size_where_the_database_knows_it():
    old_run()
    sizes = space_taken()
    if connection.vendor == "sqlite" and len(sizes) == 1:
        pytest.skip("This SQLite was built without dbstat.")
    assert sizes["runs_transcriptrecord"] > 0
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)


@pytest.mark.parametrize(
    "model", [Artifact, CommandRecord, SubcommandMeasure, Change, ReassessedTrial, RunSlot, TranscriptRecord]
)
def test_no_index_of_a_large_table_begins_another_one(model):
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, model._meta.db_table)
    indexes = [
        each["columns"] for each in found.values() if (each["index"] or each["unique"]) and each["columns"]
    ]
    begun = [(a, b) for a in indexes for b in indexes if a is not b and b[: len(a)] == a]
    assert begun == []


def test_contents_are_found_by_an_index():
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's plan depends on what the tables hold.")
    named = Artifact.objects.filter(sha256__range=("a" * 64, "b" * 64)).values_list("sha256")
    assert any("artifact_by_content" in step for step in named.explain().splitlines())


def test_a_dry_run_leaves_out_files_that_other_runs_name():
    run = old_run()
    old_run(days=1, project=run.project)
    dry = prune("--older-than", "90", "--dry-run")
    assert (dry["artifacts"], dry["files"]) == (1, 0)


@pytest.mark.parametrize("changes", [{"days": 10}, {"state": "running"}], ids=["young", "open"])
def test_it_leaves_runs_that_are(changes):
    old_run(**changes)
    assert prune("--older-than", "90")["transcripts"] == 0
    assert TranscriptRecord.objects.exists()


def test_it_keeps_the_baseline():
    run = old_run()
    Baseline.objects.create(suite=run.suite, target=run.target, run=run)
    assert prune("--older-than", "90")["transcripts"] == 0


def test_without_an_age_only_unused_files_are_removed(artifacts):
    run = old_run()
    orphan = path_of(keep_content("events", b"nobody names this").sha256)
    aged(orphan)
    counts = prune()
    assert (counts["runs"], counts["files"]) == (0, 1)
    assert not orphan.exists()
    assert path_of(run.trial_set.get().artifacts.get().sha256).exists()


def test_a_file_that_was_just_written_waits_for_its_row():
    fresh = path_of(keep_content("events", b"its row comes").sha256)
    assert prune()["files"] == 0
    assert fresh.exists()


def test_a_file_that_is_kept_again_waits_for_its_row_too():
    path = path_of(keep_content("events", b"written long ago").sha256)
    aged(path)
    keep_content("events", b"written long ago")
    assert prune()["files"] == 0
    assert path.exists()


def test_a_file_stays_while_another_run_names_its_content():
    run = old_run()
    young = old_run(days=1, project=run.project)
    assert prune("--older-than", "90")["artifacts"] == 1
    assert path_of(young.trial_set.get().artifacts.get().sha256).exists()


def test_it_is_written_into_the_audit_log():
    run = old_run()
    prune("--older-than", "90")
    event = AuditEvent.objects.get(action="retention.prune")
    assert event.project == run.project
    assert event.detail == {"runs": 1, "transcripts": 1, "artifacts": 1}


def test_pruning_again_finds_nothing():
    old_run()
    prune("--older-than", "90")
    again = prune("--older-than", "90")
    assert not any(value for name, value in again.items() if name != "dry_run")


@pytest.mark.parametrize("days", ["0", "-1", "999999", "9" * 30, "x"])
def test_it_refuses_an_invalid_age(days):
    with pytest.raises(CommandError, match=f"{days} is not a number of days: give one from 1 to 36500."):
        call_command("prune", f"--older-than={days}")


def many_old_runs() -> list[Run]:
    """Return one run more than are pruned at once, each with a transcript."""
    version, long_ago = make_suite(make_project()), timezone.now() - timedelta(days=100)
    runs = [make_run(version, created=long_ago) for _ in range(RUNS_AT_ONCE + 1)]
    for run in runs:
        make_transcript(make_trial(run), shell("ls"))
    return runs


@contextmanager
def at_deletions(*acts: Callable[[], object]) -> Iterator[None]:
    """Do one thing each before transcripts are deleted for the first time, the second time and so on."""
    left = list(acts)

    def execute_after(execute: Any, sql: str, *rest: Any) -> Any:
        if left and sql.startswith("DELETE") and "transcript" in sql:
            left.pop(0)()
        return execute(sql, *rest)

    with connection.execute_wrapper(execute_after):
        yield


def interrupt() -> None:
    raise KeyboardInterrupt


def test_the_audit_log_has_what_an_interrupted_prune_removed():
    many_old_runs()
    with at_deletions(int, interrupt), pytest.raises(KeyboardInterrupt):
        prune("--older-than", "90")
    assert TranscriptRecord.objects.count() == 1
    removed = {"runs": RUNS_AT_ONCE, "transcripts": RUNS_AT_ONCE, "artifacts": 0}
    assert AuditEvent.objects.get(action="retention.prune").detail == removed


def test_a_run_that_becomes_the_baseline_during_a_prune_keeps_everything():
    run = many_old_runs()[-1]
    with at_deletions(lambda: Baseline.objects.create(suite=run.suite, target=run.target, run=run)):
        assert prune("--older-than", "90")["transcripts"] == RUNS_AT_ONCE
    assert TranscriptRecord.objects.get().trial.run == run
