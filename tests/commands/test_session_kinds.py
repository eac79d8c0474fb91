"""`import_sessions` and `grade` on real kinds of sessions: what never ran, and history written twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.models import CommandRecord, Run
from tests.commands.calling import call
from tests.session_files import STEPS, claude, codex, otlp

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
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


@pytest.mark.parametrize(("first", "then"), [("a1", "a2"), ("a2", "a1")])
def test_a_fork_of_an_imported_session_adds_nothing(first: str, then: str) -> None:
    folder = FILES / "history-written-twice/fork"
    call("import_sessions", str(folder / f"{first}.jsonl"), "--tool", "mytool")
    done = call("import_sessions", str(folder / f"{then}.jsonl"), "--tool", "mytool")
    assert f"{then}.jsonl: 3 calls are copied from {first}.jsonl and counted there." in done.out
    assert CommandRecord.objects.count() == 3


def test_a_fork_of_an_imported_session_adds_its_own_calls() -> None:
    folder = FILES / "claude-code-fork"
    for name in ("first", "fork", "fork", "first"):
        call("import_sessions", str(folder / f"{name}.jsonl"), "--tool", "taskmgr")
    found = CommandRecord.objects.order_by("trial", "n").values_list("n", "subcommand")
    assert list(found) == [(0, "creat"), (1, "list"), (0, "create")]


def test_a_forked_rollout_of_an_imported_one_adds_nothing(tmp_path: Path) -> None:
    first = FILES / "codex-long-command/longrun.jsonl"
    fork = first.read_text().replace('"id": "longrun"', '"id": "f", "forked_from_id": "longrun"')
    (tmp_path / "fork.jsonl").write_text(fork)
    call("import_sessions", str(first), "--tool", "mytool")
    call("import_sessions", str(tmp_path), "--tool", "mytool")
    assert CommandRecord.objects.count() == 1


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


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("cline.json", "a Cline session"),
        ("cline-messages.json", "a Cline session"),
        ("swe-agent.json", "a trajectory of SWE-agent or mini-swe-agent"),
        ("pi.jsonl", "a pi session"),
    ],
)
def test_a_session_of_another_agent_is_named(file: str, what: str) -> None:
    done = call("import_sessions", str(FILES / "other-agents" / file), "--tool", "mt")
    assert f"{file}: not read yet: {what}." in done.out + done.err


@pytest.mark.parametrize(
    "file",
    [
        "gemini_cli.session.jsonl",
        "qwen_code.session.jsonl",
        "copilot_cli.session.jsonl",
        "mini_swe_agent.json",
    ],
)
def test_a_session_of_other_programs_is_imported(file: str) -> None:
    path = FILES.parent / "agent_programs" / file
    out = call("import_sessions", str(path), "--tool", "taskmgr", "--dry-run").out
    assert "7 commands, 2 failed" in out


@pytest.mark.parametrize(
    ("file", "counts"),
    [("inspect.eval", "8 commands, 2 failed"), ("aider.md", "5 commands, 0 failed, 2 not run")],
)
def test_a_file_that_is_no_json_is_imported(file: str, counts: str) -> None:
    path = FILES.parent / "agent_programs" / file
    assert counts in call("import_sessions", str(path), "--tool", "taskmgr", "--dry-run").out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_a_session_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    text = (FILES / "history-written-twice/resumed.jsonl").read_text()
    (tmp_path / "s.jsonl").write_bytes(text.encode(encoding))
    out = call("import_sessions", str(tmp_path / "s.jsonl"), "--tool", "mytool", "--dry-run").out
    assert "3 commands, 1 failed" in out


def test_parts_of_a_session_are_joined_by_their_calls(tmp_path: Path) -> None:
    lines = claude("c-1").splitlines(keepends=True)
    # The result of its last call stands in the other part.
    (tmp_path / "z.jsonl").write_bytes(b"".join(lines[:8]))
    (tmp_path / "y").mkdir()
    (tmp_path / "y/part.jsonl").write_bytes(b"".join([lines[1], *lines[7:]]))
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines[:3]))
    other = claude("c-2", steps=[("git status", 0, "")]).replace(b'"uuid": "u"', b'"uuid": "v"')
    (tmp_path / "other.jsonl").write_bytes(other)
    found = call("import_sessions", str(tmp_path), "--tool", "taskmgr", "--json").document
    assert (found["new"], found["without_tool"]) == (1, 1)
    assert [(each["line"].split()[1], each["exit_code"]) for each in found["sessions"][0]["commands"]] == [
        ("--help", 0), ("create", 0), ("create", 2), ("create", 0), ("list", 0)
    ]  # fmt: skip
    run = Run.objects.get()
    assert (run.tokens_in, run.tokens_out) == (5 * 15, 5 * 2)
    again = call("import_sessions", str(tmp_path), "--tool", "taskmgr").out
    assert "0 sessions (0 new, 1 already imported" in again


@pytest.mark.parametrize("whole", [False, True])
def test_parts_of_a_conversation_are_joined(tmp_path: Path, whole: bool) -> None:
    for n, (code, output) in enumerate([(0, "a"), (2, "error: no b")]):
        spans = otlp("o", steps=[(f"taskmgr create {n}", code, output)]).replace(b'"to"', b'"t%d"' % n)
        (tmp_path / f"{n}.json").write_bytes(spans)
    keep = ["--keep-transcript"] if whole else []
    found = call("import_sessions", str(tmp_path), "--tool", "taskmgr", "--json", *keep).document
    (session,) = found["sessions"]
    assert [(each["exit_code"], each["error"]) for each in session["commands"]] == [(0, ""), (2, "no b")]


def test_a_part_of_an_imported_session_replaces_nothing(tmp_path: Path) -> None:
    lines = claude("c-1").splitlines(keepends=True)
    parts = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    parts[0].write_bytes(b"".join(lines[:9]))
    parts[1].write_bytes(b"".join([lines[1], *lines[9:]]))
    for part in parts:
        out = call("import_sessions", str(part), "--tool", "taskmgr").out
    assert (
        "two.jsonl: a part of the session c-1, and another part of it is imported, with 3 calls that this"
        in out
    )
    assert CommandRecord.objects.count() == 3
    assert "1 continued" in call("import_sessions", str(tmp_path), "--tool", "taskmgr").out
    assert CommandRecord.objects.count() == 5


def test_a_copy_of_a_session_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(codex())
    call("import_sessions", str(file), "--tool", "taskmgr")
    (tmp_path / "older.jsonl").write_bytes(codex("x-1", STEPS[:2]))
    again = call("import_sessions", str(tmp_path), "--tool", "taskmgr").out
    assert "0 sessions (0 new, 1 already imported)" in again
    assert Run.objects.get().tokens_in == 75


def test_an_unknown_program_before_the_tool_is_named(tmp_path: Path) -> None:
    content = (FILES / "denied-calls/../history-written-twice/resumed.jsonl").read_text()
    (tmp_path / "s.jsonl").write_text(content.replace('"mytool', '"rtk mytool'))
    out = call("import_sessions", str(tmp_path), "--tool", "mytool", "--dry-run")
    assert "behind `rtk`, which evalhub doesn't know" in out.out + out.err
