"""Five megabytes of output of the real Claude Code and Gemini CLI arrive whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from runs.targets.model_server.script import ModelScript, ScriptedTurn
from runs.targets.model_server.server import ScriptPlayer, serve_models
from tests.real_agents.real import LOOPBACK_ONLY, MODELS, PROGRAMS, agent, invocation

TIMES = 20
TEXT = " ".join(map(str, range(740_000)))
"""Without repetitions: Gemini CLI stops at these."""
DIGITS = re.compile(rb"[0-9]")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["claude_code", "gemini_cli"])
def test_five_megabytes_arrive_whole_every_time(kind: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {}
    if kind == "gemini_cli":
        given = {"model": MODELS[kind], "executable": str(PROGRAMS / "gemini"), "env": LOOPBACK_ONLY}
    sizes = []
    for time in range(TIMES):
        folder = tmp_path / str(time)
        folder.mkdir()
        with serve_models(ScriptPlayer(ModelScript(turns=[ScriptedTurn(text=TEXT)]))) as url:
            recording = agent(kind, url, **given).invoke(invocation(folder))
        assert (recording.exit_code, recording.truncated, recording.unread_stream) == (0, False, "")
        assert recording.raw.rstrip().endswith(b"}")
        sizes.append(len(DIGITS.findall(recording.raw)))
    assert min(sizes) >= len(DIGITS.findall(TEXT.encode()))
