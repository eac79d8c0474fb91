"""Gemini CLI, Qwen Code and Copilot CLI as providers: the ends of their commands come from their session files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluators.model import Usage
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from evaluators.transcripts.sessions.sub_agents import with_sub_agents
from runs.engine import run_here
from runs.models import CommandRecord, Trial
from runs.targets.definitions import define, resolve_definition
from runs.targets.import_targets import import_targets
from runs.targets.providers.registry import make_provider
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.real_agents.real import (
    ANSWER,
    CODES,
    COMMANDS,
    DIRECT,
    KEY,
    LOOPBACK_ONLY,
    MODELS,
    PROGRAMS,
    SESSION_AGENTS,
    invocation,
    on_agents_path,
    playing,
    turns,
)
from tests.real_agents.test_mcp import FOUND, SCENARIO, TURNS
from tests.runs.carrying import launch
from tests.runs.engine.mcp.servers import NOTES_SERVER, serving

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("kind", SESSION_AGENTS)
def test_commands_ends_answer_and_tokens_of_a_session(kind: str, tmp_path: Path) -> None:
    with playing(*turns(*COMMANDS)) as model:
        env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
        given = {"model": MODELS[kind], "base_url": model.url, "api_key": "${{ KEY }}", "env": env}
        entry = define(
            {"name": kind, "provider": kind, "executable": str(PROGRAMS / SESSION_AGENTS[kind]), **given}
        )
        provider = make_provider(resolve_definition(entry, {"KEY": KEY}), on_agents_path())
        assert provider.check().available
        recording = provider.invoke(invocation(tmp_path, in_workspace=True))
    read = with_sub_agents(parse(recording.parser, recording.raw), recording.parser, recording.logs)
    found = analyse(read, Tool(binary="taskmgr", command_pattern=r"taskmgr\s+(\S+)"), completed=True)
    assert [command.exit_code for command in found.commands] == CODES
    assert (read.answer, read.usage) == (ANSWER, Usage(700, 140))


@pytest.mark.parametrize("kind", SESSION_AGENTS)
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.django_db(transaction=True)
def test_an_agent_uses_the_server_under_test(
    kind: str, over: str, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    with playing(*TURNS) as model, serving(tmp_path) as url:
        env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
        given = {"model": MODELS[kind], "base_url": model.url, "api_key": "${{ SCRIPTED_KEY }}", "env": env}
        program = str(PROGRAMS / SESSION_AGENTS[kind])
        entry = {"name": kind, "provider": kind, "executable": program, **given}
        import_targets(project, json.dumps({"targets": [entry]}).encode(), "targets.yaml", by=None)
        how = f"command: {sys.executable} notes_server.py" if over == "stdio" else f"url: {url}"
        files = {"notes.yaml": SCENARIO.format(server=how).encode()}
        files["templates/box/notes_server.py"] = NOTES_SERVER.read_bytes()
        (imported,) = import_files(Bundle("notes", files), project=project, by=None)
        run_here.run_here(launch(imported.version, targets=[kind]))
    trial = Trial.objects.select_related("run").get()
    assert (trial.run.error, trial.error, trial.outcome) == ("", "", "pass"), trial.scores
    found = [f"{row.subcommand} {row.failure}" for row in CommandRecord.objects.filter(trial=trial)]
    assert sorted(found) == sorted(FOUND[1:])
