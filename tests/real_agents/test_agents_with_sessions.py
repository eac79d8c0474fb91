"""Gemini CLI, Qwen Code and Copilot CLI as providers: the ends of their commands come from their session files."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.model import Usage
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from evaluators.transcripts.sessions.sub_agents import with_sub_agents
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.registry import make_provider
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

pytestmark = pytest.mark.timeout(120)


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
