"""Gemini CLI, Qwen Code and Copilot CLI as providers: the ends of their commands come from their session files.

Install any of them with npm and name their folders of programs in EVALHUB_TEST_PROGRAMS (docs/layer-1.md).
"""

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
    KEY,
    LOOPBACK_ONLY,
    invocation,
    on_agents_path,
    playing,
    turns,
)
from tests.real_agents.test_mcp import FOUND, SCENARIO, TURNS
from tests.real_agents.test_other_programs import PROGRAMS
from tests.requirements import missing
from tests.runs.carrying import launch
from tests.runs.engine.mcp.servers import NOTES_SERVER, serving

KINDS = {"gemini_cli": "gemini", "qwen_code": "qwen", "copilot_cli": "copilot"}
DIRECT = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "")
"""Qwen Code sends requests to 127.0.0.1 through a proxy, too."""
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_ends_answer_and_tokens_of_a_session(kind: str, tmp_path: Path) -> None:
    programs = [folder / KINDS[kind] for folder in PROGRAMS if (folder / KINDS[kind]).exists()]
    if not programs:
        missing("programs", f"{KINDS[kind]} is in no folder of EVALHUB_TEST_PROGRAMS.")
    with playing(*turns(*COMMANDS)) as model:
        env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
        name = "gpt-5" if kind == "copilot_cli" else "gemini-2.5-pro"
        given = {"model": name, "base_url": model.url, "api_key": "${{ KEY }}", "env": env}
        entry = define({"name": kind, "provider": kind, "executable": str(programs[0]), **given})
        provider = make_provider(resolve_definition(entry, {"KEY": KEY}), on_agents_path())
        assert provider.check().available
        recording = provider.invoke(invocation(tmp_path, in_workspace=True))
    read = with_sub_agents(parse(recording.parser, recording.raw), recording.parser, recording.logs)
    found = analyse(read, Tool(binary="taskmgr", command_pattern=r"taskmgr\s+(\S+)"), completed=True)
    assert [command.exit_code for command in found.commands] == CODES
    assert (read.answer, read.usage) == (ANSWER, Usage(700, 140))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.django_db(transaction=True)
def test_an_agent_uses_the_server_under_test(
    kind: str, over: str, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = [folder for folder in PROGRAMS if (folder / KINDS[kind]).exists()]
    if not programs:
        missing("programs", f"{KINDS[kind]} is in no folder of EVALHUB_TEST_PROGRAMS.")
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    project = make_project()
    with playing(*TURNS) as model, serving(tmp_path) as url:
        env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
        name = "gpt-5" if kind == "copilot_cli" else "gemini-2.5-pro"
        given = {"model": name, "base_url": model.url, "api_key": "${{ SCRIPTED_KEY }}", "env": env}
        entry = {"name": kind, "provider": kind, "executable": str(programs[0] / KINDS[kind]), **given}
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
