"""An MCP server as the tool under test: a real server behind the proxy, over both transports."""

from __future__ import annotations

import sys

import pytest

from runs.engine import run_here
from runs.models import Artifact, FlagConfusion, Run, Target, ToolHelp, Trial
from scenarios.tool_descriptions import ToolDescriptions
from tests.runs.carrying import launch
from tests.runs.engine.mcp.notes import COMMAND, GATES, commands, finished, suite
from tests.runs.engine.mcp.servers import serving
from tests.runs.lost_connections import result_with_lost_connections

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.mark.slow
def test_no_query_follows_the_agent_that_a_lost_connection_breaks(project):
    project.only_calibrated_judges = True
    project.save()
    run = launch(suite(project, COMMAND), targets=["shell"]).runs.get()
    result, _ = result_with_lost_connections(run)
    assert (result.error, result.outcome) == ("", "pass")
    assert len(result.detail["flags"]) == 4


EXPECTED = [
    ("help", True, ""),
    ("search", False, ""),
    ("serach", False, "unknown_tool"),
    ("create", False, "arguments"),
    ("create", False, "arguments"),
    ("create", False, "is_error"),
    ("create", False, ""),
]


def test_calls_over_standard_input_are_recorded(project):
    run = finished(suite(project, COMMAND))
    trial = Trial.objects.get(run=run)
    assert (run.error, trial.error, trial.outcome) == ("", "", "pass"), trial.scores
    assert commands(trial) == EXPECTED
    failures = trial.detail["interaction"]["failures"]
    assert failures == {"unknown_tool": 1, "arguments": 2, "is_error": 1, "protocol": 0}
    flags = FlagConfusion.objects.filter(run=run).order_by("subcommand", "kind")
    assert [(row.subcommand, row.kind, row.typed, row.meant) for row in flags] == [
        ("create", "missing", "", "title"),
        ("create", "near_miss", "titel", "title"),
        ("create", "wrong_value", "color", "one of red, blue"),
        ("serach", "unknown_command", "serach", "search"),
    ]
    assert Artifact.objects.filter(trial=trial, name="mcp").exists()


@pytest.mark.slow
def test_calls_over_http_are_recorded(project, tmp_path):
    with serving(tmp_path) as url:
        run = finished(suite(project, f"url: {url}", gates=GATES.split("    - {type: file")[0]))
    trial = Trial.objects.get(run=run)
    assert (run.error, trial.error, trial.outcome) == ("", "", "pass"), trial.scores
    assert commands(trial) == EXPECTED
    assert (tmp_path / "notes.txt").read_text() == "Bread Ada\n"


FORGER = """
import json, os, socket, sys
from pathlib import Path

config = json.loads(Path(os.environ["LLM_TOOL_TEST_MCP_CONFIG"]).read_text())
door = Path(config["mcpServers"]["notes"]["args"][-1]).parent
line = json.dumps({"connection": 1, "number": 1, "request": {"method": "tools/call", "params": {"name": "create"}}})
answer = json.dumps({"connection": 1, "number": 1, "response": {"result": {}}})
for folder in (door, door.parent / "server", Path("/scratch"), Path("/workspace")):
    for name in ("record.jsonl", "mcp-record.jsonl", "door", "control", "connect.py"):
        try:
            with (folder / name).open("a") as file:
                file.write(f"{line}\\n{answer}\\n")
            print("wrote", folder / name)
        except OSError:
            pass
for path in (door / "door", door / "connect.py"):
    try:
        path.unlink()
        print("removed", path)
    except OSError:
        pass
for process in Path("/proc").glob("[0-9]*"):
    try:
        with (process / "fd" / "3").open("a") as file:
            file.write(f"{line}\\n{answer}\\n")
    except OSError:
        pass
control = socket.socket(socket.AF_UNIX)
try:
    control.connect(str(door.parent / "server" / "control"))
    print("controlled")
except OSError:
    pass
"""


@pytest.mark.slow
def test_an_agent_cannot_forge_a_call(project):
    gates = "\n    - {type: mcp_called, tool: create}"
    version = suite(project, COMMAND, [["search", {"query": "milk"}]], gates=gates, agent=FORGER)
    trial = Trial.objects.get(run=finished(version))
    assert (trial.error, trial.outcome, commands(trial)) == ("", "fail", [])
    forged = ("wrote /scratch/", "wrote /workspace/")
    printed = trial.transcript.unpack().text.splitlines()
    assert [line for line in printed if not line.startswith(forged)] == []


@pytest.mark.slow
def test_a_server_that_needs_seconds_is_waited_for(project):
    version = suite(project, f"command: sleep 2; exec {sys.executable} notes_server.py")
    trial = Trial.objects.get(run=finished(version))
    assert (trial.error, trial.outcome, commands(trial)) == ("", "pass", EXPECTED)


def test_a_server_that_fails_in_a_trial_is_an_error_with_its_words(project):
    # It lists its tools before the run, where the fixture is laid without the setup's file.
    command = (
        f"command: test ! -e broken || {{ echo boom >&2; exit 7; }}; exec {sys.executable} notes_server.py"
    )
    version = suite(project, f"{command!r}".replace("'command: ", "command: '"), setup="touch broken")
    trial = Trial.objects.get(run=finished(version))
    assert (trial.outcome, trial.error_kind) == ("error", "setup")
    assert "The MCP server was not ready: it ended with exit code 7." in trial.error and "boom" in trial.error


@pytest.mark.slow
def test_a_server_that_ends_is_a_protocol_failure(project):
    run = finished(suite(project, COMMAND, [["crash", {}], ["search", {"query": "a"}]], gates=" []"))
    assert commands(Trial.objects.get(run=run)) == [
        ("crash", False, "protocol"),
        ("search", False, "protocol"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("over", ["stdio", "http"])
def test_a_time_limit_leaves_the_calls_so_far(project, tmp_path, over):
    calls = [["search", {"query": "milk"}], ["sleep", 300]]
    with serving(tmp_path) as url:
        how = COMMAND if over == "stdio" else f"url: {url}"
        run = finished(suite(project, how, calls, gates=" []"), timeout_seconds=6.0)
    trial = Trial.objects.get(run=run)
    assert (trial.timed_out, trial.outcome, commands(trial)) == (True, "pass", [("search", False, "")])


@pytest.mark.slow
def test_what_the_server_shows_is_kept_once_by_content(project):
    version = suite(project, COMMAND, [["search", {"query": "milk"}]], gates=" []")
    first, again = finished(version), finished(version)
    texts = {"tools": {"search": {"description": "Search all notes.", "arguments": {"query": "A word."}}}}
    other = finished(version, descriptions=texts)
    assert first.fingerprint["tool_surface"] == again.fingerprint["tool_surface"]
    assert other.fingerprint["tool_surface"] != first.fingerprint["tool_surface"]
    assert first.tool_version == again.tool_version != other.tool_version
    assert ToolHelp.objects.filter(project=project, binary="mcp").count() == 2
    assert "tools, about" in first.fingerprint["names"]["tool_surface"]
    shown = [Artifact.objects.filter(trial__run=run, name="transcript").exists() for run in (first, other)]
    assert shown == [True, True]
    transcripts = [Trial.objects.get(run=run).transcript.unpack().text for run in (first, other)]
    assert "search | Find notes." in transcripts[0]
    assert "search | Search all notes." in transcripts[1] and "A word." in transcripts[1]


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"tools": {"serch": "x"}}, "a tool 'serch', which the server lacks. Did you mean 'search'?"),
        (
            {"tools": {"search": {"arguments": {"q": "x"}}}},
            "an argument 'q' of 'search', which the server lacks.",
        ),
    ],
)
def test_descriptions_of_unknown_tools_are_refused(project, texts, sentence):
    run = finished(suite(project, COMMAND), descriptions=ToolDescriptions.model_validate(texts).model_dump())
    assert sentence in run.error


def test_a_server_that_does_not_start_spends_no_trial(project):
    run = finished(suite(project, "command: no-such-server"))
    assert "the tools of the MCP server 'notes'" in run.error
    assert not Trial.objects.filter(run=run).exclude(state="cancelled").exists()


def test_a_model_cannot_be_given_a_server(project):
    definition = {"name": "ask", "provider": "http", "url": "http://127.0.0.1:1/"}
    Target.objects.create(project=project, name="ask", provider="http", definition=definition)
    made = launch(suite(project, COMMAND), targets=["ask"]).runs.get()
    run_here.run_here(made.launch)
    assert "can't be given the MCP server 'notes'" in Run.objects.get(pk=made.pk).error
