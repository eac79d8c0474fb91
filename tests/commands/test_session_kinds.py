"""`import_sessions` and `grade` on real kinds of sessions: what never ran, and history written twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.calling import call

pytestmark = pytest.mark.django_db
FILES = Path(__file__).parents[1] / "files/sessions"


@pytest.mark.parametrize("name", ["live_denied", "live_sibling"])
def test_a_live_call_that_never_ran_is_no_error(name: str) -> None:
    document = call("grade", str(FILES / f"denied-calls/{name}.json"), "--json").document
    assert (document["interaction"]["not_run"], document["interaction"]["total_commands"]) == (1, 1)


def test_history_is_counted_once() -> None:
    path = FILES / "history-written-twice/resumed.jsonl"
    out = call("import_sessions", str(path), "--tool", "mytool", "--dry-run").out
    assert "3 commands, 1 failed" in out


def test_a_fork_adds_only_its_own_calls() -> None:
    folder = str(FILES / "history-written-twice/fork")
    out = call("import_sessions", folder, "--tool", "mytool", "--dry-run").out
    assert "3 commands, 1 failed" in out and "1 sessions" in out.replace("1 session ", "1 sessions ")
    assert "a2.jsonl: 3 calls are copied from a1.jsonl and counted there." in out


def test_calls_of_files_that_say_nothing_of_each_other_all_count(tmp_path: Path) -> None:
    first = (FILES / "history-written-twice/fork/a1.jsonl").read_text()
    (tmp_path / "a.jsonl").write_text(first)
    other = first.replace('"sessionId": "a1"', '"sessionId": "b"').replace('"uuid": "u', '"uuid": "v')
    (tmp_path / "b.jsonl").write_text(other)
    out = call("import_sessions", str(tmp_path), "--tool", "mytool", "--dry-run").out
    assert out.count("3 commands, 1 failed") == 2


def test_a_forked_rollout_adds_only_its_own_calls(tmp_path: Path) -> None:
    first = (FILES / "codex-long-command/longrun.jsonl").read_text()
    (tmp_path / "b.jsonl").write_text(first)
    fork = first.replace('"id": "longrun"', '"id": "f", "forked_from_id": "longrun"').replace("-01T", "-02T")
    (tmp_path / "a.jsonl").write_text(fork)
    out = call("import_sessions", str(tmp_path), "--tool", "mytool", "--dry-run").out
    assert out.count("1 command, 1 failed") == 1
    assert "a.jsonl: 1 call is copied from b.jsonl and counted there." in out


def test_a_fork_of_the_real_claude_code_adds_only_its_own_call() -> None:
    out = call("import_sessions", str(FILES / "claude-code-fork"), "--tool", "taskmgr", "--dry-run").out
    assert "2 commands, 2 failed" in out and "1 command, 0 failed" in out
    assert "fork.jsonl: 2 calls are copied from first.jsonl and counted there." in out
