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
