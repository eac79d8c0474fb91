"""Outages that the real Gemini CLI, Qwen Code and Copilot CLI repeat until the time limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.targets.agents.session_end import broken_by
from tests.real_agents.real import (  # fmt: skip
    COMMANDS,
    DIRECT,
    LOOPBACK_ONLY,
    MODELS,
    PROGRAMS,
    SESSION_AGENTS,
    agent,
    invocation,
    playing,
    turns,
)

SECONDS = {"gemini_cli": 30.0, "qwen_code": 30.0, "copilot_cli": 14.0}
"""Copilot CLI gives up after about 20 s; within them all repeat the request."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", SESSION_AGENTS)
def test_a_request_that_is_repeated_is_an_outage_with_the_services_words(kind: str, tmp_path: Path) -> None:
    with playing({"command": COMMANDS[3]}, {"fault": 503}) as model:
        env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
        program = str(PROGRAMS / SESSION_AGENTS[kind])
        provider = agent(kind, model.url, model=MODELS[kind], executable=program, env=env)
        recording = provider.invoke(invocation(tmp_path, timeout_seconds=SECONDS[kind]))
    broken = broken_by(recording)
    assert broken is not None
    assert broken.kind == "endpoint"
    assert "The script asks for 503." in broken.sentence


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", SESSION_AGENTS)
def test_a_retry_that_succeeds_leaves_nothing(kind: str, tmp_path: Path) -> None:
    with playing({"fault": 503, "times": 1, "command": COMMANDS[3]}, *turns()) as model:
        env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
        program = str(PROGRAMS / SESSION_AGENTS[kind])
        provider = agent(kind, model.url, model=MODELS[kind], executable=program, env=env)
        recording = provider.invoke(invocation(tmp_path))
    assert (recording.exit_code, broken_by(recording)) == (0, None)
