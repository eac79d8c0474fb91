from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from evaluators.transcripts import UnreadableTranscript, parse
from runs.errors import ProviderError
from runs.sandbox.sandbox import Level
from runs.targets.agents.agent_program import AgentLog
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.base import Recording
from runs.targets.providers.preread import preread_prompt
from runs.targets.providers.registry import make_provider
from tests.runs.containments import containment
from tests.runs.processes import nothing_left, unique_seconds
from tests.runs.targets.providers.agents import FILES, SECRET, agent, beside, invocation

pytestmark = pytest.mark.one_database

LINE = "--ask-for-approval never exec --json --color never --skip-git-repo-check"

OPEN = "--sandbox danger-full-access"
OWN = "-c project_root_markers=[]"
SERVICE = (
    '-c model_provider="evalhub" -c model_providers.evalhub={name="evalhub", base_url="http://m/v1", '
    'wire_api="responses"'
)


def codex(level: Level | None = None, *, does: str = "", **fields: Any):
    env = {"FAKE_CODEX": does, "FAKE_SECRET": "${{ SECRET }}"}
    return agent("codex", "codex", level, env=env, **fields)


def recorded_call(tmp_path: Path) -> str:
    return (tmp_path / "workspace/call.txt").read_text()


@pytest.mark.parametrize("level", list(Level))
def test_it_works(tmp_path, level):
    recording = codex(level).invoke(invocation(tmp_path))
    transcript = parse(recording.parser, recording.raw)
    assert transcript.answer == "Created the task and listed it."
    assert sum(event.type == "tool_call" for event in transcript.events) == 6
    assert (recording.exit_code, recording.stderr) == (0, "warming up\n")


@pytest.mark.parametrize(
    ("fields", "changes", "line"),
    [
        ({}, {}, f"{LINE} {OPEN} {OWN} -"),
        ({"args": ["--sandbox", "workspace-write"]}, {}, f"{LINE} {OWN} --sandbox workspace-write -"),
        ({"model": "gpt-5"}, {}, f"{LINE} {OPEN} {OWN} --model gpt-5 -"),
        ({"model": "gpt-5"}, {"model": "o9"}, f"{LINE} {OPEN} {OWN} --model o9 -"),
        ({"base_url": "http://m/v1"}, {}, f"{LINE} {OPEN} {OWN} {SERVICE}}} -"),
        ({"base_url": "http://m/v1", "api_key": "${{ SECRET }}"}, {}, f'{LINE} {OPEN} {OWN} {SERVICE}, env_key="CODEX_API_KEY"}} -'),
    ],
    ids=["bare", "arguments", "model", "run's model", "address", "address and key"],
)  # fmt: skip
def test_its_command_line_is_the_specified_one(tmp_path, fields, changes, line):
    codex(**fields).invoke(invocation(tmp_path, **changes))
    assert recorded_call(tmp_path).startswith(f"arguments: {line}\n")


def test_the_prompt_comes_on_standard_input_with_what_is_to_be_read(tmp_path):
    rules, code = beside(tmp_path, "a.instructions.md"), beside(tmp_path, "m.py")
    codex().invoke(invocation(tmp_path, guideline_files=(rules,), files=(code, code)))
    prompt = recorded_call(tmp_path).split("\n", 2)[2]
    assert prompt == preread_prompt("Implement it.", guidelines=[str(rules)], files=[str(code)])
    assert f"* [m.py](file://{code})" in prompt
    assert prompt.count("m.py](") == 1
    assert prompt.endswith("[[ ## user_query ## ]]\n\nImplement it.")


def test_without_files_the_prompt_is_the_question_alone():
    assert preread_prompt(" q ") == "[[ ## user_query ## ]]\n\nq"


@pytest.mark.parametrize(
    ("fixture", "looked_at", "place"),
    [
        ("", False, "workspace"),
        ("", True, "scratch"),
        ("readme", False, "scratch"),
        ("readme", True, "scratch"),
    ],
)
def test_prompt_md_lies_in_the_workspace_only_where_that_is_its_own(tmp_path, fixture, looked_at, place):
    given = invocation(tmp_path, in_workspace=looked_at)
    if fixture:
        (given.workspace / fixture).touch()
    codex().invoke(given)
    assert (tmp_path / place / "prompt.md").read_text() == "[[ ## user_query ## ]]\n\nImplement it."
    found = {path.name for path in given.workspace.iterdir()}
    assert ("prompt.md" in found) is (place == "workspace")


def test_it_works_in_the_folder_that_the_target_names(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    codex(cwd=str(tmp_path / "elsewhere")).invoke(invocation(tmp_path))
    assert (tmp_path / "elsewhere/call.txt").exists()


def log_of(recording: Recording) -> str:
    return recording.logs["log"].decode()


def test_it_logs_what_happens(tmp_path):
    text = log_of(codex().invoke(invocation(tmp_path, attempt=2)))
    assert text.startswith("# Codex log of target: coder\n# scenario: a/b c\n# attempt: 2\n")
    assert "[+00:00] [stderr] warming up\n" in text
    assert "[stdout] item.completed agent_message: Created the task and listed it.\n" in text
    assert "item.started command_execution: /bin/bash -lc './taskmgr list'" in text


def test_the_log_may_be_json_and_elsewhere(tmp_path):
    recording = codex(logDir=str(tmp_path / "logs"), logFormat="json").invoke(invocation(tmp_path))
    (file,) = (tmp_path / "logs").iterdir()
    assert file.read_bytes() == recording.logs["log"]
    assert '"type": "agent_message"' in log_of(recording)


def test_the_log_is_written_while_it_works(tmp_path):
    stop, seconds = threading.Event(), unique_seconds()
    given = invocation(tmp_path, cancelled=stop.is_set, timeout_seconds=30.0)
    seen: list[str] = []

    def look() -> None:
        began = time.monotonic()
        while not seen and time.monotonic() - began < 20:
            texts = [path.read_text() for path in (tmp_path / "logs").glob("*.log")]
            seen.extend(text for text in texts if "turn.started" in text)
            time.sleep(0.05)
        stop.set()

    thread = threading.Thread(target=look)
    thread.start()
    recording = codex(does=f"sleep {seconds}", log_dir=str(tmp_path / "logs")).invoke(given)
    thread.join()
    assert seen
    assert recording.cancelled
    assert nothing_left(f"sleep\0{seconds}")


def test_the_log_holds_no_value_of_a_variable(tmp_path):
    recording = codex(does="fail").invoke(invocation(tmp_path))
    assert "quota exceeded" in log_of(recording)
    assert SECRET not in log_of(recording)


def test_a_log_puts_lines_together_that_come_in_pieces(tmp_path):
    with AgentLog({}, clock=iter([0.0, 75.0, 76.0]).__next__) as log:
        log.take("stdout", b'{"type": "a", ')
        log.take("stderr", b"oops\n")
        log.take("stdout", b'"item": {"type": "b", "text": "c\\nd"}}')
    assert log.content == b"[+01:15] [stderr] oops\n[+01:16] [stdout] a b: c d\n"


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("fail", r"ended with exit code 3: stderr: warming up\nquota exceeded.*stdout: \{"),
        ("silent", "ended without an assistant message"),
        ("garbage", "printed an unreadable stream"),
        ("nothing", "printed nothing"),
    ],
)
def test_where_only_the_answer_counts_none_is_an_error(tmp_path, does, message):
    with pytest.raises(ProviderError, match=f"(?s){message}") as caught:
        codex(does=does, log_dir=str(tmp_path / "logs")).invoke(invocation(tmp_path, in_workspace=False))
    assert caught.value.kind == "command"
    log = str(caught.value).split("its log: ")[1].split(")")[0]
    assert Path(log).is_file()


def test_in_a_workspace_a_failed_session_is_judged(tmp_path):
    recording = codex(does="fail").invoke(invocation(tmp_path))
    assert recording.exit_code == 3
    assert parse("codex", recording.raw).events


def test_in_a_workspace_what_cannot_be_read_is_left_to_the_reader(tmp_path):
    recording = codex(does="garbage").invoke(invocation(tmp_path))
    with pytest.raises(UnreadableTranscript):
        parse(recording.parser, recording.raw)


@pytest.mark.slow
def test_a_timeout_is_recorded_in_a_workspace_and_an_error_without(tmp_path):
    seconds = unique_seconds()
    slow = codex(does=f"sleep {seconds}", timeout_seconds=1.2)
    recording = slow.invoke(invocation(tmp_path))
    assert recording.timed_out
    assert parse("codex", recording.raw).events
    with pytest.raises(ProviderError, match=r"timed out after 1\.2 s") as caught:
        slow.invoke(invocation(tmp_path, in_workspace=False))
    assert caught.value.kind == "timeout"
    assert nothing_left(f"sleep\0{seconds}")


def test_it_finds_its_program_on_the_path_with_its_version(tmp_path):
    shutil.copy(FILES / "agents/codex", tmp_path / "codex")
    base = containment()
    on_path = type(base)(base.policy, base.machine, f"{tmp_path}:{base.path}")
    provider = make_provider(resolve_definition(define({"name": "coder", "provider": "codex"}), {}), on_path)
    assert provider.check().version == "codex-cli 0.169.0"


@pytest.mark.parametrize("executable", ["no-such-codex", "/no/such/codex", __file__])
def test_a_missing_program_is_reported(tmp_path, executable):
    missing = agent("codex", "codex", executable=executable)
    assert "set `executable`" in missing.check().sentence
    with pytest.raises(ProviderError, match="there is no program") as caught:
        missing.invoke(invocation(tmp_path))
    assert caught.value.kind == "start"
