"""The recipes of docs/providers.md for other agents, word by word, with their stand-ins."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.transcript_gate import NoTranscriptErrors
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from runs.targets.definitions import read_targets, resolve_definition
from runs.targets.providers.registry import make_provider
from tests.runs.containments import containment
from tests.runs.targets.providers.agents import FILES, invocation

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parents[4]
RECIPES = (ROOT / "docs/providers.md").read_text().partition("## Other agents")[2]
TARGETS = {
    target.name: target for target in read_targets(RECIPES.split("```")[1].removeprefix("yaml").encode(), "t")
}
OTHERS = {
    target.name: target for target in read_targets(RECIPES.split("```")[3].removeprefix("yaml").encode(), "t")
}
"""Agents that write a file, or spans on standard output."""

_spec = importlib.util.spec_from_file_location("command_ends", ROOT / "docs/recipes/command_ends.py")
assert _spec and _spec.loader
command_ends = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(command_ends)


@pytest.mark.parametrize("name", ["gemini", "acp"])
def test_a_recipe_reports_commands_and_answer(tmp_path, name):
    base = containment()
    path = f"{ROOT / 'docs/recipes'}:{FILES / 'agents'}:{base.path}"
    target = resolve_definition(TARGETS[name], {"GEMINI_API_KEY": "key"})
    recording = make_provider(target, replace(base, path=path)).invoke(invocation(tmp_path))
    transcript = parse(recording.parser, recording.raw, recording.events)
    found = [(call.event.command, call.exit_code) for call in pair_calls(transcript.events)]
    assert found == [("taskmgr creat", 1), ("taskmgr list", None)]
    assert (recording.answer, recording.exit_code) == ("All done.", 0)


@pytest.mark.parametrize(
    ("name", "commands", "ended"), [("mini", [("taskmgr creat", 1)], 3), ("aider", [], 0)]
)
def test_a_file_that_an_agent_writes_is_read(tmp_path, name, commands, ended):
    base = containment()
    target = resolve_definition(OTHERS[name], {"OPENAI_API_KEY": "key"})
    provider = make_provider(target, replace(base, path=f"{FILES / 'agents'}:{base.path}"))
    recording = provider.invoke(invocation(tmp_path))
    transcript = parse(recording.parser, recording.raw)
    found = analyse(transcript, Tool(binary="taskmgr"), completed=True)
    assert [(each.line, each.exit_code) for each in found.commands] == commands
    assert (found.source, recording.exit_code) == ("stream", ended)
    assert transcript.answer == ("Done." if name == "aider" else "")


@pytest.mark.parametrize("file", ["pydantic-ai-console.txt", "openai-agents-console.txt"])
def test_spans_of_the_console_exporter_are_exact(file):
    transcript = parse("otel", (FILES / "recipes" / file).read_bytes())
    found = analyse(transcript, Tool(binary="mytool"), completed=True)
    assert [(each.line, each.exit_code, each.end) for each in found.commands] == [
        ("mytool add a", 0, "reported"),
        ("mytool rm zz", 3, "reported"),
        ("mytool list", None, "unknown"),
    ]


SPECIMENS = FILES / "recipes"
MT = Tool(binary="mt")
LINES = (
    "./mt add a",
    "./mt --help",
    "./mt add a --tag t",
    "./mt fail 3",
    "./mt fail 3 || true",
    "./mt list | head -1",
)


def run_recipe(folder: Path, name: str, *arguments: str) -> Interaction:
    """Layer 1 by the events that a recipe writes; the agent's home is the folder."""
    events, answer = folder / "events.jsonl", folder / "answer.txt"
    subprocess.run(
        [sys.executable, ROOT / "docs/recipes" / name, events, answer, *arguments],
        env={"PATH": os.defpath, "HOME": str(folder), "GEMINI_API_KEY": "key"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert answer.read_text() == "All done."
    transcript = parse("events", events.read_bytes())
    assert [call.event.command for call in pair_calls(transcript.events)] == [*LINES]
    return analyse(transcript, MT, completed=True)


def played(stand_in: str, *files: str) -> list[str]:
    return [sys.executable, str(FILES / "agents" / stand_in), *(str(SPECIMENS / name) for name in files)]


@pytest.mark.parametrize(
    ("recipe", "arguments"),
    [
        ("gemini-events", played("gemini-specimen", "gemini-stream.txt", "gemini-session.jsonl")),
        ("acp-events", ["Do it.", *played("acp-specimen", "qwen-acp.txt")]),
        ("acp-events", ["Do it.", *played("acp-specimen", "copilot-acp.txt")]),
    ],
    ids=["gemini", "qwen", "copilot"],
)
def test_a_recipe_reads_exit_codes_where_the_program_states_them(tmp_path, recipe, arguments):
    found = run_recipe(tmp_path, recipe, *arguments)
    assert [command.exit_code for command in found.commands] == [2, 0, 0, 3, None, None]
    ends = [(command.end, command.failed) for command in found.commands]
    assert ends[:4] == [("reported", True), ("reported", False), ("reported", False), ("reported", True)]
    # `|| true` hides the code, but not the tool's error message; `| head` hides it for good.
    assert ends[4:] == [("unknown", False)] * 2
    assert [command.printed_error for command in found.commands[4:]] == [True, False]
    assert (found.help_seeking, found.retries_after_failure, found.unknown_exit) == (1, 2, 2)
    gate = NoTranscriptErrors().check(
        TrialEvidence(parse("events", (tmp_path / "events.jsonl").read_bytes()), tool=MT)
    )
    assert gate.passed is False


@pytest.mark.parametrize(
    ("recipe", "arguments"),
    [
        ("gemini-events", [*played("gemini-specimen", "gemini-stream.txt"), os.devnull]),
        ("acp-events", ["Do it.", *played("acp-specimen", "gemini-acp.txt")]),
    ],
    ids=["stream", "acp"],
)
def test_carried_out_is_no_exit_code_of_0(tmp_path, recipe, arguments):
    found = run_recipe(tmp_path, recipe, *arguments)
    assert {command.exit_code for command in found.commands} == {None}
    assert found.total_commands == 6 and found.first_try_success_rate != 1.0


def gemini_call(output: str, shown: str = "") -> str:
    response = {"functionResponse": {"response": {"output": output}}}
    return json.dumps({"toolCalls": [{"id": "t", "result": [response], "resultDisplay": shown}]})


@pytest.mark.parametrize(
    ("output", "shown", "code"),
    [
        ("Output: x\nProcess Group PGID: 3", "x", 0),
        ("Output: (empty)\nExit Code: 7\nProcess Group PGID: 3", "", 7),
        # What the command prints isn't an end.
        ("Output: x\nExit Code: 7\nProcess Group PGID: 3", "x\nExit Code: 7", 0),
        ("Output: x\nExit Code: 1\nExit Code: 4\nProcess Group PGID: 3", "x\nExit Code: 1", 4),
        ("Output: x\nSignal: SIGKILL\nProcess Group PGID: 3", "x", None),
        ("Command moved to background (PID: 3).", "", None),
        ("Command was cancelled by user before it could complete.", "", None),
    ],
)
def test_a_session_file_of_gemini_states_ends(tmp_path, output, shown, code):
    chats = tmp_path / ".gemini/tmp/workspace/chats"
    chats.mkdir(parents=True)
    chats.joinpath("session-1.jsonl").write_text(f"{gemini_call(output, shown)}\nno JSON\n")
    codes = command_ends.GeminiSession(tmp_path).codes()
    assert codes == ({} if code is None else {"t": code})


@pytest.mark.parametrize(
    ("reported", "text", "code"),
    [
        ({"exit_code": 3}, "", 3),
        ({"metadata": {"exit": 2}}, "", 2),
        ({"shellExecution": {"exitCode": 0}}, "", 0),
        ({"success": True}, "done", None),
        (None, "no\n\nCommand exited with code 2", 2),
        (None, "no\n[Command exited with code 2]", 2),
        (None, "Failed with exit code 9\n", 9),
        (None, "Command exited with code 2 is what I saw.\nok", None),
        (None, "Command: mt\nOutput: x\nExit Code: 2\nSignal: 0\nProcess Group PGID: 9", 2),
        (None, "Command: mt\nOutput: x\nExit Code: (none)\nSignal: 9", None),
        (True, "", None),
    ],
)
def test_an_end_is_read_where_it_is_stated(reported, text, code):
    assert command_ends.stated_code(reported, text) == code
