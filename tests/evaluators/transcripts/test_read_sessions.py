"""Real kinds of sessions, read by their values: calls that never ran, history written twice, long commands."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

from evaluators.model import Transcript, Usage
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.sessions import IMPORTERS, Session, parse_session_file
from evaluators.transcripts.sessions.sub_agents import SUB_AGENT, with_sub_agents
from tests.session_files import lines_of

FILES = Path(__file__).parents[2] / "files/sessions"
TOOL = Tool(binary="mytool")


def session_of(name: str) -> Session:
    with (FILES / name).open("rb") as file:
        _, sessions, problems = parse_session_file(file, IMPORTERS)
        (found,) = sessions
    assert not problems
    return found


def ends(name: str) -> list[tuple[str, int | None]]:
    found = analyse(session_of(name).transcript, TOOL, completed=False)
    return [(each.line, each.exit_code) for each in found.commands]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("rejected-new", "rejected"),
        ("not-granted", "denied"),
        ("denied-rule", "denied"),
        ("sibling", "cancelled"),
    ],
)
def test_a_call_that_never_ran_has_no_end(name: str, why: str) -> None:
    read = session_of(f"denied-calls/{name}.jsonl").transcript
    found = analyse(read, TOOL, completed=False)
    assert (found.total_commands, found.error_count, found.not_run) == (0, 0, 1)
    (result,) = (event for event in read.events if event.type == "tool_result")
    assert (result.not_run, result.exit_code, result.success) == (why, None, None)


def test_a_command_in_the_background_has_an_unknown_end() -> None:
    assert ends("denied-calls/bg.jsonl") == [("mytool serve", None)]


def test_history_that_is_written_twice_counts_once() -> None:
    found = ends("history-written-twice/resumed.jsonl")
    assert found == [("mytool add one", 1), ("mytool init", 0), ("mytool add one", 0)]


def turn(
    n: int, *, message: str = "", time: int | None = None, answer: str = "ok"
) -> list[dict[str, object]]:
    """A call with the id that some models write in every turn, and its result."""
    at = f"2026-08-01T10:00:{n if time is None else time:02}.000Z"
    use = {"type": "tool_use", "id": "call_0", "name": "Bash", "input": {"command": "mytool list"}}
    result = {"type": "tool_result", "tool_use_id": "call_0", "content": answer, "is_error": answer != "ok"}
    return [
        {"type": "assistant", "sessionId": "s", "timestamp": at,
         "message": {"id": message or f"m{n}", "role": "assistant", "content": [use]}},
        {"type": "user", "sessionId": "s", "timestamp": at, "message": {"role": "user", "content": [result]}},
    ]  # fmt: skip


def commands(lines: list[dict[str, object]], tmp_path: Path) -> list[int | None]:
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines_of(lines))
    return [code for _, code in ends(str(file))]


def test_the_same_id_in_another_message_is_another_call(tmp_path: Path) -> None:
    assert commands([*turn(0), *turn(1, answer="Exit code 2\nno")], tmp_path) == [0, 2]


def test_a_copy_brings_the_result_that_the_first_lacked(tmp_path: Path) -> None:
    lines = turn(0, answer="Exit code 2\nno")
    assert commands([lines[0], *lines, *turn(1)], tmp_path) == [2, 0]


def test_a_failure_that_quotes_a_refusal_stays_one(tmp_path: Path) -> None:
    quoted = "Exit code 3\nPermission to use Bash has been denied."
    assert commands(turn(0, answer=quoted), tmp_path) == [3]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("longrun", [("mytool build", 3)]),
        ("nohead", [("mytool list", None)]),
        ("codemode", [("mytool list", None)]),
    ],
)
def test_a_codex_command_is_read_by_its_header(name: str, expected: list[tuple[str, int | None]]) -> None:
    assert ends(f"codex-long-command/{name}.jsonl") == expected


def rollout(*items: dict[str, object]) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = [{"type": "session_meta", "payload": {"id": "r"}}]
    for n, item in enumerate(items):
        at = f"2026-08-01T10:00:{n:02}.000Z"
        lines.append({"type": "response_item", "timestamp": at, "payload": item})
    return lines


def script(text: str) -> dict[str, object]:
    return {"type": "custom_tool_call", "name": "exec", "call_id": "a", "input": text}


def output(text: str, kind: str = "custom_tool_call_output") -> dict[str, object]:
    return {"type": kind, "call_id": "a", "output": text}


def lines_and_ends(items: list[dict[str, object]], tmp_path: Path) -> list[tuple[str, int | None]]:
    file = tmp_path / "r.jsonl"
    file.write_bytes(lines_of(rollout(*items)))
    return ends(str(file))


def test_each_command_of_a_script_is_found(tmp_path: Path) -> None:
    text = """const [a, b] = await Promise.all([
      tools.exec_command({cmd: 'mytool add \\'x\\''}), tools.exec_command({ workdir: "/w", "cmd": `mytool list` }),
    ]); text("tools.exec_command({cmd})")"""
    found = lines_and_ends([script(text), output("Script completed\nOutput:\nerror: no")], tmp_path)
    assert found == [("mytool add x", None), ("mytool list", None)]


@pytest.mark.parametrize("program", ["pwsh", "C:\\Windows\\powershell.exe"])
def test_a_command_of_powershell_is_found(program: str, tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "shell", "call_id": "a",
            "arguments": f'{{"command": ["{program.replace(chr(92), chr(92) * 2)}", "-NoProfile", "-Command", "mytool list"]}}'}  # fmt: skip
    found = lines_and_ends([call, output("Exit code: 2\nOutput:\nno", "function_call_output")], tmp_path)
    assert found == [("mytool list", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "exec command rejected by user",
        "`mytool list` rejected: policy forbids commands starting with `mytool`",
        'exec_command failed for `mytool list`: CreateProcess { message: "Rejected(\\"rejected by user\\")" }',
        "failed to parse function arguments: missing field `cmd`",
    ],
)
def test_a_codex_command_that_was_refused_never_ran(text: str, tmp_path: Path) -> None:
    call = {
        "type": "function_call",
        "name": "exec_command",
        "call_id": "a",
        "arguments": '{"cmd": "mytool list"}',
    }
    items = [call, output(text, "function_call_output")]
    assert lines_and_ends(items, tmp_path) == []
    below = [call, output(f"Process exited with code 1\nOutput:\n{text}", "function_call_output")]
    assert lines_and_ends(below, tmp_path) == [("mytool list", 1)]


def make_rollout(*lines: dict[str, object], about: dict[str, object], began: str = "10:05:00.0") -> bytes:
    """Return a rollout that begins at a time and whose first line says what it comes from."""
    meta = {"type": "session_meta", "timestamp": f"2026-08-01T{began}Z", "payload": {"id": "child", **about}}
    return lines_of([meta, *lines])


def make_count(time: str, total: int, last: int) -> dict[str, object]:
    about = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}}
    return {
        "type": "event_msg",
        "timestamp": f"2026-08-01T{time}Z",
        "payload": {"type": "token_count", "info": about},
    }


def make_call(time: str, id: str) -> dict[str, object]:
    call = {
        "type": "function_call",
        "name": "exec_command",
        "call_id": id,
        "arguments": '{"cmd": "mytool list"}',
    }
    return {"type": "response_item", "timestamp": f"2026-08-01T{time}Z", "payload": call}


SPAWNED: dict[str, object] = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "parent"}}}}
OF_PARENT: dict[str, object] = {"type": "session_meta", "payload": {"id": "parent"}}
REPLAYED = (OF_PARENT, make_call("10:00:01", "a"), make_count("10:00:02", 900, 900))
WRITTEN_ANEW = (OF_PARENT, make_call("10:05:00.2", "a"), make_count("10:05:00.3", 900, 900))


@pytest.mark.parametrize("about", [SPAWNED, {"forked_from_id": "parent"}, {"parent_thread_id": "parent"}])
@pytest.mark.parametrize("history", [REPLAYED, WRITTEN_ANEW], ids=["with its old times", "written anew"])
@pytest.mark.parametrize(
    ("own", "tokens"),
    [
        ((make_count("10:05:04", 1000, 100),), 100),
        ((make_count("10:05:04", 100, 100), make_count("10:05:08", 250, 150)), 250),
        ((), None),
    ],
    ids=["the count goes on", "the count begins again", "nothing of its own"],
)
def test_the_history_of_another_rollout_is_not_its_own(
    own: tuple[dict[str, object], ...],
    tokens: int | None,
    history: tuple[dict[str, object], ...],
    about: dict[str, object],
) -> None:
    _, (found,), _ = parse_session_file(BytesIO(make_rollout(*history, *own, about=about)), IMPORTERS)
    usage = found.transcript.usage
    assert (usage.input if usage else None) == tokens
    assert (found.trail.forked_from, found.trail.replayed) == ({"parent"}, 1)


def test_a_sub_agents_own_rollout_counts_in_full() -> None:
    own = (make_call("10:05:03", "a"), make_count("10:05:04", 100, 100), make_count("10:05:08", 250, 150))
    _, (found,), _ = parse_session_file(BytesIO(make_rollout(*own, about=SPAWNED)), IMPORTERS)
    assert found.transcript.usage == Usage(250, 0)
    assert (found.trail.forked_from, found.trail.replayed) == (frozenset(), 0)


def test_a_spawned_agent_that_acts_at_once_has_no_history() -> None:
    own = (make_call("10:05:00.1", "a"), make_count("10:05:00.2", 100, 100))
    _, (found,), _ = parse_session_file(BytesIO(make_rollout(*own, about=SPAWNED)), IMPORTERS)
    assert (found.transcript.usage, found.trail.replayed) == (Usage(100, 0), 0)


def test_a_fork_without_its_parents_counts_has_what_its_own_turns_used() -> None:
    own = (make_call("10:05:03", "a"), make_count("10:05:04", 5_000, 100), make_count("10:05:08", 5_150, 150))
    _, (found,), _ = parse_session_file(
        BytesIO(make_rollout(*own, about={"forked_from_id": "parent"})), IMPORTERS
    )
    assert found.transcript.usage == Usage(250, 0)


def test_a_live_sub_agents_history_is_not_read_again() -> None:
    rollout = make_rollout(
        *WRITTEN_ANEW, make_call("10:05:03", "b"), make_count("10:05:04", 1000, 100), about=SPAWNED
    )
    read = with_sub_agents(
        Transcript(source="stream", usage=Usage(900, 0)), "codex", {f"{SUB_AGENT}1": rollout}
    )
    assert [event.id for event in read.events] == ["child/b"]
    assert read.usage == Usage(1000, 0)


def sample(**about: object) -> dict[str, object]:
    call = {"id": "c", "function": "bash", "arguments": {"cmd": "mytool list"}}
    return {**about, "messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}


def test_samples_without_uuid_are_told_apart() -> None:
    samples = [sample(id=1, epoch=1), sample(id=1, epoch=2), sample(id="1", epoch=3), sample(id=2, uuid="u")]

    def ids(**about: object) -> list[str]:
        log = {"version": 2, "status": "success", "eval": about, "plan": {}, "samples": samples}
        return [each.id for each in parse_session_file(BytesIO(json.dumps(log).encode()), IMPORTERS)[1]]

    assert ids(eval_id="e") == ["e/1/1", "e/1/2", "e/1/3", "u"]
    older, other = ids(created="2024-01-01"), ids(created="2024-01-02")
    assert len({*older, *other}) == 7


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n<exited with exit code 3>", 3),
        ("<exited with exit code 0>\n", 0),
        ("a\n<shellId: b-1 completed with exit code 4>", 4),
        ("<exited with exit code 3>\nmore", None),
        ("it says <exited with exit code 3>", None),
        (7, None),
    ],
)
def test_only_the_end_of_copilots_result_states_an_exit_code(text: object, code: int | None) -> None:
    begun = {"toolCallId": "c", "toolName": "bash", "arguments": {"command": "mytool list"}}
    ended = {"toolCallId": "c", "success": True, "result": {"content": text}}
    lines = [
        {"type": "session.start", "data": {"copilotVersion": "1.0.12", "sessionId": "s"}},
        {"type": "tool.execution_start", "data": begun},
        {"type": "tool.execution_complete", "data": ended},
    ]
    _, (found,), _ = parse_session_file(BytesIO(lines_of(lines)), IMPORTERS)
    assert [each.exit_code for each in analyse(found.transcript, TOOL, completed=False).commands] == [code]


def test_what_a_person_shows_and_stops_is_known(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    said = {"role": "user", "content": [picture, {"type": "text", "text": "See this."}]}
    claude = [{"type": "user", "sessionId": "s", "message": said}]
    copilot = [
        {"type": "session.start", "data": {"copilotVersion": "1.0.12", "sessionId": "s"}},
        {"type": "user.message", "data": {"content": "Go."}},
        {"type": "abort", "data": {"reason": "user_initiated"}},
    ]
    for lines, texts in ((claude, ["[image]", "See this."]), (copilot, ["Go."])):
        file = tmp_path / "s.jsonl"
        file.write_bytes(lines_of(lines))
        with file.open("rb") as opened:
            (session,) = parse_session_file(opened, IMPORTERS)[1]
        read = session.transcript
        assert ([event.text for event in read.events], read.unknown_events) == (texts, 0)
