"""Sessions whose end is not in their stream, played by programs that print and write what real ones did."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from evaluators.model import Usage
from runs.engine.assess import parse_recording
from runs.targets.agents.session_end import broken_by
from runs.targets.providers.base import Recording
from tests.runs.targets.providers.agents import SESSION_FILES, agent, invocation

FILES = Path(__file__).parents[3] / "files"
REPEATED, SUBS = FILES / "repeated_outages", FILES / "sub_agents"
SERVICE = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}


def print_file(content: str, to: str = "") -> str:
    return f"cat {to} <<'END_OF_FILE'\n{content}END_OF_FILE\n"


def keep_session(kind: str, content: str) -> str:
    """Return a command that writes an agent's session file."""
    path = f'"$HOME/{SESSION_FILES[kind]}"'
    return f"mkdir -p $(dirname {path})\n{print_file(content, f'> {path}')}"


def play(kind: str, tmp_path: Path, script: str, seconds: float = 20.0) -> Recording:
    program = tmp_path / "agent"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 1.2.3 && exit\n{script}\n')
    program.chmod(0o755)
    asked = invocation(tmp_path, in_workspace=True, timeout_seconds=seconds)
    return agent(kind, "", executable=str(program), **SERVICE).invoke(asked)


def repeat_request(kind: str) -> str:
    script = print_file((REPEATED / f"{kind}.jsonl").read_text())
    if kind == "qwen_code":
        script += keep_session(kind, (REPEATED / "qwen_code.session.jsonl").read_text())
    if kind == "gemini_cli":
        lines = (REPEATED / "gemini_cli.log").read_text().splitlines()
        attempts = [line.partition("[stderr] ")[2] for line in lines if "[stderr]" in line]
        # Standard error has another way to the worker: what is printed later arrives later.
        script += "sleep 0.5\n" + "".join(f"echo {shlex.quote(line)} >&2\n" for line in attempts)
    return script


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["gemini_cli", "qwen_code", "copilot_cli"])
def test_a_request_that_is_repeated_until_the_time_limit_is_an_outage(kind: str, tmp_path: Path) -> None:
    recording = play(kind, tmp_path, f"{repeat_request(kind)}exec sleep 60", seconds=2.0)
    broken = broken_by(recording)
    assert recording.timed_out
    assert broken is not None
    assert broken.kind == "endpoint"
    assert "The script asks for 503." in broken.sentence


@pytest.mark.parametrize("kind", ["gemini_cli", "qwen_code"])
def test_the_time_limit_of_a_session_that_works_is_no_outage(kind: str, tmp_path: Path) -> None:
    recording = play(
        kind, tmp_path, f"{print_file((REPEATED / f'{kind}.jsonl').read_text())}exec sleep 60", 1.2
    )
    assert recording.timed_out
    assert broken_by(recording) is None


@pytest.mark.parametrize("kind", ["gemini_cli", "qwen_code"])
@pytest.mark.parametrize(("code", "crashed"), [(0, False), (1, True)])
def test_a_stream_that_lost_its_end_is_read_from_the_session_file(
    kind: str, code: int, crashed: bool, tmp_path: Path
) -> None:
    stream = (SUBS / f"{kind}.stream.jsonl").read_text().splitlines(keepends=True)
    session = keep_session(kind, (SUBS / f"{kind}.session.jsonl").read_text())
    recording = play(kind, tmp_path, f"{session}{print_file(''.join(stream[:-2]))}exit {code}")
    broken = broken_by(recording)
    assert (broken is not None and broken.kind == "crash") is crashed
    if not crashed:
        read = parse_recording(recording)
        assert read.answer == "done"
        assert any("the agent's own account" in problem for problem in read.problems)


def test_claude_codes_session_file_is_kept_where_its_stream_lost_its_end(tmp_path: Path) -> None:
    file = (FILES / "sessions/history-written-twice/resumed.jsonl").read_text()
    script = keep_session("claude_code", file)
    whole = (FILES / "streams/claude_code.jsonl").read_text()
    assert "session" not in play("claude_code", tmp_path, f"cat >/dev/null\n{script}{print_file(whole)}").logs
    cut = "".join(whole.splitlines(keepends=True)[:-1])
    assert "session" in play("claude_code", tmp_path, f"cat >/dev/null\n{script}{print_file(cut)}").logs


def test_a_failed_turn_of_codex_has_the_tokens_of_its_rollout(tmp_path: Path) -> None:
    tokens = '{"input_tokens":800,"cached_input_tokens":200,"output_tokens":60,"reasoning_output_tokens":0}'
    rollout = (
        '{"timestamp":"2026-11-29T05:00:00Z","type":"session_meta","payload":{"id":"a"}}\n'
        '{"timestamp":"2026-11-29T05:00:01Z","type":"response_item","payload":{"type":"message",'
        '"role":"assistant","content":[{"type":"output_text","text":"I try."}]}}\n'
        '{"timestamp":"2026-11-29T05:00:02Z","type":"event_msg","payload":{"type":"token_count",'
        f'"info":{{"total_token_usage":{tokens},"last_token_usage":{tokens}}}}}}}\n'
    )
    path = '"$CODEX_HOME/sessions/2026/rollout-1.jsonl"'
    script = f"cat >/dev/null\nmkdir -p $(dirname {path})\n{print_file(rollout, f'> {path}')}"
    recording = play(
        "codex", tmp_path, script + print_file((FILES / "cases/66/codex.jsonl").read_text()) + "exit 1"
    )
    assert parse_recording(recording).usage == Usage(800, 60, cache_read=200)


@pytest.mark.slow
def test_a_program_that_waits_for_its_background_processes_is_ended(tmp_path: Path) -> None:
    stream = print_file((FILES / "streams/claude_code.jsonl").read_text())
    recording = play("claude_code", tmp_path, f"cat >/dev/null\n{stream}sleep 300 &\nwait", seconds=60.0)
    assert (recording.timed_out, recording.exit_code, broken_by(recording)) == (False, 0, None)
    assert 10 <= recording.seconds < 40
    assert any("10 s after its last event" in note for note in recording.notes)
