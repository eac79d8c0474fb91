"""Gemini CLI, Qwen Code and Copilot CLI: how they are started, and what their session files add to their streams."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.model import Usage
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from evaluators.transcripts.sessions.sub_agents import MAIN, with_sub_agents
from runs.engine.assess import describe_recording
from runs.targets.agents.session_agents import HOME
from runs.targets.definitions import define
from runs.targets.providers.base import McpEndpoint
from tests.runs.targets.providers.agents import SECRET, SESSION_FILES, agent, invocation

ARGUMENTS = {
    "gemini_cli": "--output-format stream-json --approval-mode yolo --model m --own --prompt=",
    "qwen_code": "--output-format stream-json --yolo --auth-type openai --model m --own --prompt=",
    "copilot_cli": "--output-format json --allow-all-tools --own --prompt=",
}
# fmt: off
VARIABLES = {
    "gemini_cli": {"GEMINI_API_KEY": SECRET, "GEMINI_CLI_TRUST_WORKSPACE": "true", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9"},
    "qwen_code": {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
    "copilot_cli": {"COPILOT_AUTO_UPDATE": "false", "COPILOT_MODEL": "m", "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_API_KEY": SECRET, "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:9/v1"},
}
# fmt: on
SERVICE = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "${{ SECRET }}"}


def played(kind: str, tmp_path: Path, **fields: Any) -> Any:
    env = {"FAKE_KIND": kind, "FAKE_SESSION": SESSION_FILES[kind], **fields.pop("env", {})}
    mcp = fields.pop("mcp", None)
    provider = agent(kind, "session-agent", env=env, **fields)
    return provider.invoke(invocation(tmp_path, in_workspace=True, mcp=mcp))


def words(tmp_path: Path) -> str:
    return " ".join((tmp_path / "workspace/call.txt").read_text().split())


def variables(tmp_path: Path) -> dict[str, str]:
    lines = (tmp_path / "workspace/env.txt").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_it_starts_with_ready_settings(kind: str, tmp_path: Path) -> None:
    played(kind, tmp_path, args=["--own"], **SERVICE)
    assert words(tmp_path).startswith(ARGUMENTS[kind])
    assert variables(tmp_path) == VARIABLES[kind]


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_session_file_tells_the_ends_and_the_tokens(kind: str, tmp_path: Path) -> None:
    recording = played(kind, tmp_path, **SERVICE)
    read = with_sub_agents(parse(recording.parser, recording.raw), recording.parser, recording.logs)
    found = analyse(read, Tool(binary="taskmgr"), completed=True)
    assert [command.exit_code for command in found.commands] == [0, 1, 1, 0, None, None, 0]
    assert found.not_run == 1
    assert describe_recording(recording).detail["own_account"] is True
    assert "own_account" not in describe_recording(replace(recording, logs={})).detail
    tokens = Usage(1000, 200, cache_read=400) if kind == "copilot_cli" else Usage(1100, 220, cache_read=440)
    assert read.usage == tokens


def test_a_broken_session_file_is_a_note() -> None:
    raw = (Path(__file__).parents[3] / "files/agent_programs/gemini_cli.stream.jsonl").read_bytes()
    read = with_sub_agents(parse("gemini_cli", raw), "gemini_cli", {MAIN: b"{}"})
    assert read.events == parse("gemini_cli", raw).events
    assert "session file can't be read" in read.problems[-1]


@pytest.mark.parametrize(
    ("kind", "args", "left_out"),
    [
        ("gemini_cli", ["--approval-mode=plan"], "--approval-mode yolo"),
        ("qwen_code", ["--approval-mode", "plan"], "--yolo"),
        ("qwen_code", ["--auth-type=gemini"], "--auth-type openai"),
    ],
)
def test_arguments_of_the_targets_own_count(
    kind: str, args: list[str], left_out: str, tmp_path: Path
) -> None:
    played(kind, tmp_path, args=args, **SERVICE)
    assert left_out not in words(tmp_path)


def test_gemini_needs_no_choice_of_login_and_reads_nothing_above_the_workspace(tmp_path: Path) -> None:
    played("gemini_cli", tmp_path, api_key="${{ SECRET }}")
    settings = json.loads((tmp_path / "workspace/settings.txt").read_text())
    assert settings["security"] == {"auth": {"selectedType": "gemini-api-key"}}
    assert settings["context"] == {"memoryBoundaryMarkers": []}
    played("gemini_cli", tmp_path)
    assert "security" not in json.loads((tmp_path / "workspace/settings.txt").read_text())


STDIO = McpEndpoint("notes", command=("/opt/python", "connect.py"))
# `env` passes the agent's words on, as the connection does.
HTTP = McpEndpoint("notes", url="http://evalhub-mcp.invalid/mcp", around=("/usr/bin/env",))


@pytest.mark.parametrize(
    ("kind", "file"), [("gemini_cli", ".gemini/settings.json"), ("qwen_code", ".qwen/settings.json")]
)
@pytest.mark.parametrize("mcp", [STDIO, HTTP, None], ids=["stdio", "http", "none"])
def test_the_settings_file_has_the_server_under_test(
    kind: str, file: str, mcp: McpEndpoint | None, tmp_path: Path
) -> None:
    played(kind, tmp_path, mcp=mcp, **SERVICE)
    settings = json.loads((tmp_path / "scratch" / HOME / file).read_text())
    over_stdio = {"command": "/opt/python", "args": ["connect.py"], "trust": True}
    # The port is known only when the agent runs; both programs put variables into their settings.
    over_http = {"httpUrl": "$EVALHUB_MCP_URL", "trust": True}
    how = over_stdio if mcp == STDIO else over_http
    assert settings.get("mcpServers") == ({"notes": how} if mcp else None)
    assert variables(tmp_path).get("EVALHUB_MCP_URL") == (mcp.url if mcp == HTTP and mcp else None)


@pytest.mark.parametrize(
    ("mcp", "how"),
    [
        (STDIO, {"type": "local", "command": "/opt/python", "args": ["connect.py"]}),
        (HTTP, {"type": "http", "url": "http://evalhub-mcp.invalid/mcp"}),
    ],
    ids=["stdio", "http"],
)
def test_copilot_gets_the_server_under_test_as_an_argument(
    mcp: McpEndpoint, how: dict[str, Any], tmp_path: Path
) -> None:
    played("copilot_cli", tmp_path, mcp=mcp, **SERVICE)
    given = words(tmp_path).partition("--additional-mcp-config ")[2].partition(" --prompt=")[0]
    assert json.loads(given) == {"mcpServers": {"notes": {**how, "tools": ["*"]}}}


def test_copilot_without_an_address_signs_in_to_github(tmp_path: Path) -> None:
    played("copilot_cli", tmp_path, model="gpt-5", api_key="${{ SECRET }}")
    assert variables(tmp_path) == {"COPILOT_AUTO_UPDATE": "false", "COPILOT_GITHUB_TOKEN": SECRET}
    assert "--model gpt-5" in words(tmp_path)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("gemini-cli", "gemini_cli"),
        ("qwen-code", "qwen_code"),
        ("copilot-cli", "copilot_cli"),
        ("gemini", "gemini"),
    ],
)
def test_agentvs_names_are_aliases(written: str, kind: str) -> None:
    assert define({"name": "a", "provider": written, "model": "m", "api_key": "${{ KEY }}"}).kind == kind
