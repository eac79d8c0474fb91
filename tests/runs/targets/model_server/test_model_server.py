"""The scripted model over HTTP, in its four protocols."""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalhub.web.example_agent import free_port
from evaluators.grading.judges.rubric import Criterion, RubricCriteria
from evaluators.grading.judges.rubric_judge import read_statements
from runs.targets.definitions import read_targets
from runs.targets.model_server.script import read_script
from runs.targets.model_server.server import ScriptPlayer, serve_models
from scenarios.formats.parsed import ScenarioFileError

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parents[4]
SCRIPT = """
turns:
  - command: ls
  - text: All done.
sessions:
  - when: hard
    turns: [{text: Too hard.}]
"""
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
QUESTION = [{"role": "user", "content": "Do it."}]
SHELLS = {
    "/responses": {"type": "function", "name": "shell_command", "parameters": SCHEMA},
    "/chat/completions": {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}},
    "/messages": {"name": "Bash", "input_schema": SCHEMA},
}
CALLED = {
    "/responses": [{"type": "function_call", "call_id": "c", "name": "shell_command", "arguments": "{}"}],
    "/chat/completions": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}],
    "/messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "Bash"}]}],
}
PATHS = list(SHELLS)


@contextmanager
def server(script: str = SCRIPT) -> Iterator[tuple[httpx.Client, ScriptPlayer]]:
    player = ScriptPlayer(read_script(script.encode(), "script.yaml"))
    with serve_models(player) as url, httpx.Client(base_url=url, trust_env=False) as client:
        yield client, player


def request(path: str, *, later: bool = False, tools: bool = True, **more: Any) -> dict[str, Any]:
    messages = [*QUESTION, *(CALLED[path] if later else [])]
    body = {"input" if path == "/responses" else "messages": messages, "model": "m", **more}
    return {**body, "tools": [SHELLS[path]]} if tools else body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_turns_follow_from_the_conversation(path, stream):
    with server() as (client, player):
        first, second, again = (
            client.post(path, json=request(path, later=later, stream=stream)).text for later in (0, 1, 0)
        )
    assert '\\"command\\":\\"ls\\"' in first or '"command":"ls"' in first
    assert "All done." not in first
    assert "All done." in second
    assert "ls" in again
    assert [seen.path for seen in player.seen] == [f"/v1{path}"] * 3


@pytest.mark.parametrize("path", PATHS)
def test_a_request_without_a_shell_gets_the_last_text(path):
    with server() as (client, _):
        assert "All done." in client.post(path, json=request(path, tools=False)).text


@pytest.mark.parametrize("path", PATHS)
def test_a_session_may_have_turns_of_its_own(path):
    with server() as (client, _):
        body = request(path)
        body[next(iter(body))] = [{"role": "user", "content": [{"type": "text", "text": "a hard one"}]}]
        assert "Too hard." in client.post(path, json=body).text


@pytest.mark.parametrize("path", PATHS)
def test_instructions_choose_a_session_too(path):
    instructions = {
        "/responses": {"instructions": "hard"},
        "/messages": {"system": [{"type": "text", "text": "hard"}]},
    }
    with server() as (client, _):
        body = request(path, **instructions.get(path, {}))
        if path == "/chat/completions":
            body["messages"] = [{"role": "system", "content": "hard"}, *QUESTION]
        assert "Too hard." in client.post(path, json=body).text


@pytest.mark.parametrize("path", PATHS)
def test_a_fault_comes_as_often_as_asked(path):
    script = "turns: [{text: Fine., fault: 429, times: 2, retry_after_seconds: 3}]"
    with server(script) as (client, _):
        answers = [client.post(path, json=request(path)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "3"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_a_cut_answer_breaks_the_connection(path, stream):
    with server("turns: [{text: Fine., fault: cut}]") as (client, _):
        with pytest.raises(httpx.TransportError):
            client.post(path, json=request(path, stream=stream))
        assert "Fine." in client.post(path, json=request(path, stream=stream)).text


@pytest.mark.parametrize("path", PATHS)
def test_nonsense_is_a_call_without_valid_arguments(path):
    with server("turns: [{command: ls, fault: nonsense}]") as (client, _):
        assert '"command\\": [' in client.post(path, json=request(path)).text.replace('\\\\"', '\\"')


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/responses", b"{", 400),
        ("POST", "/responses", b"[]", 400),
        ("POST", "/nothing", b"{}", 404),
        ("GET", "/nothing", b"", 404),
        ("GET", "/models", b"", 200),
    ],
)
def test_what_it_does_not_serve_is_an_error_in_json(method, path, content, status):
    with server() as (client, _):
        answer = client.request(method, path, content=content)
    assert answer.status_code == status
    assert isinstance(answer.json(), dict)


def test_many_agents_connect_at_once():
    with server() as (client, _), ExitStack() as stack:
        agents = [stack.enter_context(socket.socket()) for _ in range(100)]
        for agent in agents:
            agent.setblocking(False)
            agent.connect_ex((client.base_url.host, client.base_url.port))
        # A connection that found no place is tried again after a second.
        time.sleep(0.5)
        connected = select.select([], agents, [], 0)[1]
    assert len(connected) == 100


def test_a_question_that_no_session_fits_is_an_error():
    with server("sessions: [{when: x9, turns: [{text: y}]}]") as (client, _):
        assert client.post("/messages", json=request("/messages")).status_code == 400


@pytest.mark.parametrize(
    ("script", "line", "words"),
    [
        ("turns: []", 1, "`turns`"),
        ("turns:\n  - text: a\n  - command: a\n    text: b", 3, "one of `command`, `tool` and `text`"),
        ("usage: {input_tokens: 10, cache_read_tokens: 11}\nturns:\n  - text: a", 1, "Tokens of the cache are part of `input_tokens`"),
        ("turns:\n  - text: a\n  - {}", 3, "needs a `command`, a `tool`, a `text` or a `fault`"),
        ("turns:\n  - fault: 200", 2, "from 400 to 599"),
        ("turns:\n  - fault: broken", 2, "fault"),
        ("turns:\n  - text: a\n    tims: 3", 3, "tims"),
        ("turns:\n  - text: [a\n", 3, "YAML"),
        ("- text: a", 1, ""),
    ],
)  # fmt: skip
def test_a_wrong_script_is_refused_with_its_line(script, line, words):
    with pytest.raises(ScenarioFileError) as caught:
        read_script(script.encode(), "s.yaml")
    problem = caught.value.problems[0]
    assert problem.line == line
    assert words in str(problem)
    assert "\n" not in str(problem)


def model_server(folder: Path, script: str, *words: str) -> list[str]:
    (folder / "s.yaml").write_text(script)
    return [
        sys.executable,
        str(ROOT / "manage.py"),
        "model_server",
        "--script",
        str(folder / "s.yaml"),
        *words,
    ]


def test_the_command_serves_and_records_without_keys(tmp_path):
    record = tmp_path / "r.jsonl"
    argv = model_server(tmp_path, SCRIPT, "--port", str(free_port()), "--record", str(record), "--json")
    env = {"EVALHUB_DATA": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(argv, env=env, stdout=-1, stderr=-1, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[1].rstrip(".")
        key = {"authorization": "Bearer sk-secret"}
        answer = httpx.post(f"{url}/responses", json=request("/responses"), headers=key, trust_env=False)
        process.terminate()
        out, _ = process.communicate(timeout=20)
    assert answer.status_code == 200
    assert json.loads(out)["requests"] == 1
    assert process.returncode == 0
    [line] = record.read_text().splitlines()
    assert json.loads(line)["body"]["model"] == "m"
    assert "sk-secret" not in line


@pytest.mark.slow
def test_the_command_refuses_a_wrong_script(tmp_path):
    env = {"EVALHUB_DATA": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        model_server(tmp_path, "turns: [{}]"), env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "s.yaml:1: turns[0]" in done.stderr


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / "docs" / document).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_documented_rehearsal_works_word_by_word():
    script, targets, judge, judges = blocks("model-server.md", "yaml")
    (turn,) = read_script(judge.encode(), "judge.yaml").turns
    rubric = RubricCriteria(form="statements", criteria=(Criterion(id="printed", weight=1.0),))
    assert read_statements(str(turn.text), rubric).scores == {"printed": 1.0}
    [judge_target] = read_targets(judges.encode(), "targets.yaml")
    assert judge_target.fields["base_url"] == "http://127.0.0.1:8901/v1"
    assert len(read_script(script.encode(), "rehearsal.yaml").turns) == 3
    [target] = read_targets(targets.encode(), "targets.yaml")
    assert target.fields["base_url"] == "http://127.0.0.1:8900/v1"
    with pytest.raises(ScenarioFileError) as caught:
        read_script(b"turns:\n  - text: a\n  - {text: a, command: b}", "rehearsal.yaml")
    assert str(caught.value) in (ROOT / "docs/model-server.md").read_text()


def test_every_documented_target_is_valid():
    documented = [text for text in blocks("providers.md", "yaml") if text.startswith("targets:")]
    assert len(documented) > 5
    for text in documented:
        assert read_targets(text.encode(), "providers.md")


GEMINI = "/v1beta/models/gemini-2.5-pro"


def contents(*more: dict[str, Any], question: str = "Do it.") -> dict[str, Any]:
    """Return a request in Gemini's format."""
    declared = [{"name": "run_shell_command", "parametersJsonSchema": SCHEMA}]
    asked = {"role": "user", "parts": [{"text": question}]}
    return {"contents": [asked, *more], "tools": [{"functionDeclarations": declared}]}


def test_gemini_gets_calls_and_answers() -> None:
    call = {"functionCall": {"name": "run_shell_command", "args": {"command": "ls"}}}
    result = {"functionResponse": {"name": "run_shell_command", "response": {"output": "a"}}}
    later = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    with server() as (client, _):
        first = client.post(f"{GEMINI}:generateContent", json=contents()).json()
        assert first["candidates"][0]["content"]["parts"] == [call]
        assert first["usageMetadata"]["promptTokenCount"] == 100
        streamed = client.post(f"{GEMINI}:streamGenerateContent?alt=sse", json=contents(*later)).text
        (event,) = [json.loads(line.removeprefix("data: ")) for line in streamed.splitlines() if line]
        assert event["candidates"][0]["content"]["parts"] == [{"text": "All done."}]
        other = client.post(f"{GEMINI}:generateContent", json=contents(question="hard")).json()
        assert other["candidates"][0]["content"]["parts"] == [{"text": "Too hard."}]


def test_a_shell_that_takes_several_commands_gets_one() -> None:
    schema = {"type": "object", "properties": {"commands": {"type": "array", "items": {"type": "string"}}}}
    tool = {"type": "function", "function": {"name": "run_commands", "parameters": schema}}
    with server() as (client, _):
        body = {"messages": QUESTION, "model": "m", "tools": [tool]}
        (called,) = client.post("/chat/completions", json=body).json()["choices"][0]["message"]["tool_calls"]
    assert json.loads(called["function"]["arguments"]) == {"commands": ["ls"]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_calls_of_one_answer_come_together(path, stream):
    script = "turns: [{command: ls, also: [{command: pwd}]}, {command: id}, {text: All done.}]"
    with server(script) as (client, _):
        first = client.post(path, json=request(path, stream=stream)).text
        body = request(path, stream=stream)
        body["input" if path == "/responses" else "messages"] += CALLED[path] * 2
        second = client.post(path, json=body).text
    assert ["ls" in first, "pwd" in first, "pwd" in second] == [True, True, False]
    assert re.search(r'command\\*": ?\\*"id', second)


@pytest.mark.parametrize(
    "turn",
    [
        "{text: x, also: [{command: a}]}",
        "{command: a, also: [{text: b}]}",
        "{command: a, also: [{command: b, fault: cut}]}",
    ],
)
def test_also_takes_calls_only(turn):
    with pytest.raises(ScenarioFileError) as caught:
        read_script(f"turns: [{turn}]".encode(), "script.yaml")
    assert "lso`" in caught.value.problems[0].what
