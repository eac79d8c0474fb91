"""`import_sessions` shows what it would keep, and stores it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.model import Usage
from runs.models import CommandRecord, Run
from tests.commands.calling import call
from tests.session_files import STEPS, claude, codex

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_bytes(claude())
    (tmp_path / "b.jsonl").write_bytes(codex())
    (tmp_path / "c.jsonl").write_bytes(b"hello")
    return tmp_path


def test_a_dry_run_prints_the_commands_and_stores_nothing(folder: Path) -> None:
    out = call("import_sessions", str(folder), "--tool", "taskmgr", "--dry-run").out
    assert "    2 taskmgr create --fmt json x  # no such option: --fmt\n" in out
    assert "2 sessions (2 new)\n" in out and f"! {folder}/c.jsonl: line 1: not a session file" in out
    assert not Run.objects.exists()


def test_an_import_names_its_run_and_what_is_known(folder: Path) -> None:
    found = call("import_sessions", str(folder), "--tool", "taskmgr", "--json").document
    run = Run.objects.get()
    assert (found["run"], found["new"], run.trials) == (run.pk, 2, 2)
    again = call("import_sessions", str(folder), "--tool", "taskmgr").out
    assert again.startswith("0 sessions (0 new, 2 already imported)\n")


def test_the_tokens_of_sessions_are_those_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(claude())
    (tmp_path / "b.jsonl").write_bytes(codex().replace(b'"input_tokens": 75', b'"input_tokens": 45'))
    call("import_sessions", str(tmp_path), "--tool", "taskmgr")
    run = Run.objects.get()
    trials = list(run.trial_set.order_by("tokens_in"))
    assert [(each.tokens_in, each.tokens_out) for each in trials] == [(45, 10), (75, 10)]
    assert (run.tokens_in, run.tokens_out) == (120, 20)
    assert trials[1].detail["usage"]["cache_read"] == 25
    # What a later release needs to compute their cost.
    kept = trials[1].transcript.unpack()
    assert kept.usage_by_model == {"claude-x": Usage(75, 10, cache_read=25)}


def test_a_continued_session_moves_its_tokens(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    for count in (2, 5):
        file.write_bytes(claude("c-1", STEPS[:count]))
        call("import_sessions", str(file), "--tool", "taskmgr")
    assert [run.tokens_in for run in Run.objects.order_by("pk")] == [0, 5 * 15]


def test_an_earlier_copy_of_a_session_replaces_nothing(tmp_path: Path) -> None:
    file, content = tmp_path / "a.jsonl", claude()
    lines = content.splitlines(keepends=True)
    for part, expected in ((lines[:-3], "1 new"), (lines, "1 continued"), (lines[:-3], "1 already imported")):
        file.write_bytes(b"".join(part))
        assert expected in call("import_sessions", str(file), "--tool", "taskmgr").out
    assert CommandRecord.objects.count() == len(STEPS)


def test_without_a_session_of_the_tool_it_is_wrong_use(folder: Path) -> None:
    called = call("import_sessions", str(folder), "--tool", "other")
    assert called.code == 2
    assert "No session with other found. 2 sessions without other." in called.err
