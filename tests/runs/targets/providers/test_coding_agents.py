from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluators.transcripts import parse
from evaluators.transcripts.latest import LatestCalls
from runs.errors import ProviderError
from runs.sandbox.sandbox import Level
from runs.targets.providers.base import PollCalls
from tests.runs.targets.providers.agents import SECRET, agent, beside, invocation

pytestmark = pytest.mark.one_database

QUESTION = "[[ ## user_query ## ]]\n\nImplement it."
CLAUDE = ["-p", "--output-format", "stream-json", "--verbose"]
OPEN = ["--permission-mode", "bypassPermissions"]
KINDS = ["claude_code", "opencode"]


def session(kind: str, *, fails: str = "", **fields: Any):
    return agent(kind, "session", env={"FAKE_STREAM": kind, "FAKE_FAILS": fails}, **fields)


def read(tmp_path: Path, name: str) -> str:
    return (tmp_path / "workspace" / name).read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_works_in_the_workspace_and_its_stream_is_read(tmp_path, kind):
    recording = session(kind).invoke(invocation(tmp_path))
    transcript = parse(recording.parser, recording.raw)
    assert transcript.answer == "Created the task and listed it."
    assert sum(event.type == "tool_call" for event in transcript.events) == 6
    assert "Created the task" in recording.logs["log"].decode()


@pytest.mark.parametrize(
    ("kind", "fields", "words", "stdin"),
    [
        ("claude_code", {}, [*CLAUDE, *OPEN], QUESTION),
        (
            "claude_code",
            {"model": "m", "max_turns": 9, "args": ["--bare"]},
            [*CLAUDE, "--model", "m", "--max-turns", "9", *OPEN, "--bare"],
            QUESTION,
        ),
        ("claude_code", {"args": ["--permission-mode=plan"]}, [*CLAUDE, "--permission-mode=plan"], QUESTION),
        ("opencode", {}, ["run", "--format", "json", QUESTION], ""),
        (
            "opencode",
            {"model": "m", "args": ["--share"]},
            ["run", "--format", "json", "--model", "m", "--share", QUESTION],
            "",
        ),
    ],
)  # fmt: skip
def test_it_is_started_as_its_program_expects(tmp_path, kind, fields, words, stdin):
    session(kind, **fields).invoke(invocation(tmp_path))
    assert read(tmp_path, "call.txt") == "\n".join(words) + "\n"
    assert read(tmp_path, "read.txt") == stdin


def test_the_prompt_names_what_is_to_be_read_and_the_run_its_model(tmp_path):
    file = beside(tmp_path, "m.py")
    session("claude_code", model="m").invoke(invocation(tmp_path, files=(file,), model="other"))
    assert f"[m.py](file://{file})" in read(tmp_path, "read.txt")
    assert "--model\nother\n" in read(tmp_path, "call.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_session_is_judged_only_in_a_workspace(tmp_path, kind):
    broken = session(kind, fails="yes")
    assert broken.invoke(invocation(tmp_path)).exit_code == 1
    with pytest.raises(ProviderError, match="exit code 1: stderr: no credit") as caught:
        broken.invoke(invocation(tmp_path, in_workspace=False))
    assert caught.value.kind == "command"


@pytest.mark.parametrize("kind", KINDS)
def test_it_checks_that_its_program_exists(kind):
    assert session(kind).check().version == "1.2.3"
    assert "set `executable`" in session(kind, executable="/no/such").check().sentence


@pytest.mark.parametrize("kind", KINDS)
def test_its_calls_are_reported_and_counted_once(tmp_path, kind):
    looks: list[PollCalls] = []
    session(kind).invoke(invocation(tmp_path, watch=looks.append))
    [look] = looks
    assert [look(), look()] == [LatestCalls("./taskmgr list", 6, 0)] * 2


def test_its_last_call_is_reported_while_it_works(tmp_path):
    program = tmp_path / "slow"
    block = {"type": "tool_use", "name": "Bash", "input": {"command": "taskmgr list"}}
    line = json.dumps({"type": "assistant", "message": {"content": [block]}})
    # It is asked for its version first.
    program.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && exit\necho '{line}'\nsleep 60\n")
    program.chmod(0o755)
    looks: list[PollCalls] = []
    asked = invocation(
        tmp_path, watch=looks.append, cancelled=lambda: looks[0]().last == "taskmgr list", in_workspace=True
    )
    assert agent("claude_code", "", executable=str(program)).invoke(asked).cancelled


def settings_of(tmp_path: Path, kind: str, **fields: Any) -> dict[str, str]:
    """The variables that a session gets."""
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\nenv > env.txt\n")
    program.chmod(0o755)
    agent(kind, "", executable=str(program), **fields).invoke(invocation(tmp_path))
    return dict(line.split("=", 1) for line in read(tmp_path, "env.txt").splitlines() if "=" in line)


def test_claude_gets_its_service_without_a_version_in_its_path(tmp_path):
    env = settings_of(tmp_path, "claude_code", base_url="http://m/v1/", api_key="${{ SECRET }}")
    assert (env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_API_KEY"]) == ("http://m", SECRET)
    assert env["IS_SANDBOX"] == "1"


@pytest.mark.parametrize(
    ("fields", "provider", "settings"),
    [
        ({"model": "m", "base_url": "http://m"}, "evalhub", {"apiKey": "none", "baseURL": "http://m"}),
        ({"model": "openai/m", "base_url": "http://m"}, "openai", {"apiKey": "none", "baseURL": "http://m"}),
        ({"model": "xai/m", "api_key": "${{ SECRET }}"}, "xai", {"apiKey": "{env:EVALHUB_AGENT_KEY}"}),
    ],
)
def test_opencode_gets_its_service_as_configuration(tmp_path, fields, provider, settings):
    env = settings_of(tmp_path, "opencode", **fields)
    config = json.loads(env["OPENCODE_CONFIG_CONTENT"])
    assert config["provider"][provider]["options"] == settings
    assert ("npm" in config["provider"][provider]) is (provider == "evalhub")
    assert config["permission"] == {"*": "allow"}
    assert env.get("EVALHUB_AGENT_KEY", "") == (SECRET if "api_key" in fields else "")


@pytest.mark.parametrize(
    ("fields", "empty"),
    [
        ({"model": "m", "base_url": "http://m"}, True),
        ({"model": "openai/m", "base_url": "http://m"}, False),
        ({"model": "xai/m", "base_url": "http://m"}, False),
        ({"model": "xai/m", "api_key": "${{ SECRET }}"}, False),
    ],
)
def test_opencode_reads_no_list_of_models_for_an_unknown_provider(tmp_path, fields, empty):
    env = settings_of(tmp_path, "opencode", level=Level.OFF, **fields)
    assert ("OPENCODE_MODELS_PATH" in env) is empty
    if empty:
        assert Path(env["OPENCODE_MODELS_PATH"]).read_text() == "{}"


def test_a_folder_where_opencodes_list_of_models_belongs_is_reported(tmp_path):
    asked = invocation(tmp_path)
    (asked.scratch / "opencode-models.json").mkdir()
    with pytest.raises(ProviderError, match="list of models can't be written") as caught:
        session("opencode", model="m", base_url="http://m").invoke(asked)
    assert caught.value.kind == "setup"


@pytest.mark.parametrize("fields", [{"api_key": "${{ SECRET }}"}, {"api_key": "${{ SECRET }}", "model": "m"}])
def test_opencode_needs_a_provider_for_a_key(tmp_path, fields):
    with pytest.raises(ProviderError, match="needs a model with its provider") as caught:
        session("opencode", **fields).invoke(invocation(tmp_path))
    assert caught.value.kind == "configuration"


@pytest.mark.parametrize("kind", KINDS)
def test_a_variable_of_the_target_counts_more(tmp_path, kind):
    own = {"IS_SANDBOX": "0", "OPENCODE_CONFIG_CONTENT": "{}"}
    env = settings_of(tmp_path, kind, env=own)
    assert {name: env[name] for name in own} == own


def test_without_a_sandbox_the_home_is_the_trial_s_own(tmp_path):
    env = settings_of(tmp_path, "claude_code", level=Level.OFF)
    assert env["HOME"] == str(tmp_path / "scratch/agent-home")


@pytest.mark.spec("llm-tool-test", "A session's turns")
def test_a_scenario_limits_the_turns_of_its_session(tmp_path):
    session("claude_code", max_turns=9).invoke(invocation(tmp_path, max_turns=3))
    assert "--max-turns\n3\n" in read(tmp_path, "call.txt")


@pytest.mark.parametrize(("cost", "stopped"), [(0.6, True), (0.4, False)])
@pytest.mark.spec("llm-tool-test", "A trial's cost limit")
def test_a_session_is_stopped_when_its_stream_reports_a_higher_cost(tmp_path, cost, stopped):
    program = tmp_path / "costly"
    step = json.dumps({"type": "step_finish", "part": {"cost": cost, "tokens": {"input": 1, "output": 1}}})
    waits = "exec sleep 60" if stopped else ":"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && exit\necho '{step}'\n{waits}\n")
    program.chmod(0o755)
    asked = invocation(tmp_path, max_usd=0.5, timeout_seconds=40.0)
    recording = agent("opencode", "", executable=str(program)).invoke(asked)
    assert (recording.exit_code != 0, recording.cancelled, recording.timed_out) == (stopped, False, False)
    assert any("it cost more than $0.50 (cost.max_usd)" in note for note in recording.notes) is stopped


def test_opencode_without_ripgrep_can_start_and_is_said_to_load_no_skill(tmp_path):
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\necho 1.18.33\n")
    program.chmod(0o755)
    found = agent("opencode", "", executable=str(program), model="a/b", api_key="${{ SECRET }}").check()
    assert found.available
    assert bool(found.sentence) is (shutil.which("rg") is None)
    assert not found.sentence or "loads skills with ripgrep" in found.sentence
