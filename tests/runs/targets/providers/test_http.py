"""What is sent to an HTTP endpoint, and what is read from its answer."""

from __future__ import annotations

import json
import threading
import time

import pytest

from evaluators.grading.assertions import ToolCall, calls_of_transcript
from evaluators.model import Usage
from evaluators.transcripts import parse
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.registry import make_provider
from tests.runs.containments import containment
from tests.runs.servers import Reply, Request, serving
from tests.runs.targets.providers.endpoints import WEATHER, asked, invocation, judged, provider

pytestmark = pytest.mark.one_database


@pytest.mark.spec("tool-forge", "The message, and what is captured of the answer")
def test_it_sends_the_message_and_takes_the_answer():
    request, recording = asked()
    assert (request.method, request.path, request.json) == ("POST", "/chat", {"message": "weather?"})
    assert recording.answer == "Cold in Oslo."
    assert (recording.usage, recording.cost_usd, recording.exit_code) == (Usage(30, 5), 0.01, 0)
    assert json.loads(recording.raw) == WEATHER


@pytest.mark.spec("tool-forge", "The message, and what is captured of the answer")
def test_the_assertions_see_the_endpoints_calls():
    _, recording = asked()
    transcript = parse(recording.parser, recording.raw, recording.events)
    assert calls_of_transcript(transcript) == (ToolCall("get_weather", {"city": "Oslo"}, True, 0.012),)
    held = judged(recording, tools_called=["get_weather"], no_tool_errors=True, response_contains=["Oslo"])
    assert held.outcome == "pass"


@pytest.mark.spec("tool-forge", "A call's name, success, duration and parameters")
def test_a_failed_call_fails_the_case():
    calls = [{"name": "get_weather", "error": "down"}]
    _, recording = asked(Reply({"response": "", "toolCalls": calls}))
    assert judged(recording, no_tool_errors=True).outcome == "fail"


def test_it_sends_the_targets_fields():
    fields = {
        "method": "put",
        "headers": {"X-Team": "${{ TEAM }}"},
        "apiKey": "${{ KEY }}",
        "inputField": "input.messages[0].content",
        "body": {"model": "m", "input": {"messages": [{"role": "user"}]}},
        "env": {},
    }
    with serving(Reply(WEATHER)) as server:
        variables = {"TEAM": "search", "KEY": "secret-key"}
        definition = define({"name": "agent", "provider": "http", "url": server.url, **fields})
        target = resolve_definition(definition, variables)
        make_provider(target, containment()).invoke(invocation())
    (request,) = server.requests
    assert (request.method, request.headers["x-team"]) == ("PUT", "search")
    assert request.headers["authorization"] == "Bearer secret-key"
    assert request.json == {"model": "m", "input": {"messages": [{"role": "user", "content": "weather?"}]}}
    assert set(target.secrets) == {"search", "secret-key"}


def test_it_can_ask_by_get():
    request, recording = asked(method="GET", inputField="q", body={"n": 3})
    assert (request.path, request.body) == ("/chat?n=3&q=weather%3F", b"")
    assert recording.answer == "Cold in Oslo."


def test_every_trial_has_its_own_session():
    with serving(Reply(WEATHER)) as server:
        agent = provider(server.url, sessionField="meta.session")
        agent.invoke(invocation())
        agent.invoke(invocation())
    first, second = (request.json["meta"]["session"] for request in server.requests)
    assert first
    assert first != second


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"stubsField": "stubs"}, {"message": "weather?", "stubs": {"w": {"t": 1}}}),
        ({}, {"message": "weather?"}),
    ],
    ids=["takes them", "does not"],
)
def test_stubs_go_to_an_endpoint_that_takes_them(fields, sent):
    request, _ = asked(given=invocation(stubs={"w": {"t": 1}}), **fields)
    assert request.json == sent


def test_it_reads_the_answer_at_the_targets_path():
    payload = {"data": {"say": "hi", "used": [{"name": "w", "durationMs": 5}]}}
    _, recording = asked(Reply(payload), outputField="data.say", toolCallsField="data.used")
    assert recording.answer == "hi"
    assert judged(recording, tools_called=["w"], response_contains=["hi"]).outcome == "pass"
    assert json.loads(recording.raw) == payload


def test_it_reads_a_streamed_answer():
    pieces = (b'data: {"delta": "Cold in"}\n\n', b'data: {"delta": " Oslo."}\n\n', b"data: [DONE]\n\n")
    headers = {"Content-Type": "text/event-stream"}
    _, recording = asked(Reply(pieces=pieces, headers=headers, delay=0.05))
    assert recording.answer == "Cold in Oslo."
    assert judged(recording, response_contains=["in Oslo"]).outcome == "pass"


@pytest.mark.spec("tool-forge", "Latency from sending to the complete answer")
def test_the_latency_is_from_sending_to_the_last_byte():
    body = json.dumps(WEATHER).encode()
    with serving(Reply(pieces=(body[:9], body[9:]), delay=0.2)) as server:
        agent = provider(server.url)
        began = time.monotonic()
        recording = agent.invoke(invocation())
        whole = time.monotonic() - began
    assert 0.4 <= recording.seconds <= whole
    assert judged(recording, max_latency_ms=350).outcome == "fail"


def test_many_trials_at_once_are_kept_apart():
    def echo(request: Request) -> Reply:
        return Reply({"response": request.json["message"]}, delay=0.02)

    answers: dict[int, str | None] = {}
    with serving(echo) as server:
        agent = provider(server.url)

        def one(n: int) -> None:
            answers[n] = agent.invoke(invocation(prompt=f"p{n}")).answer

        threads = [threading.Thread(target=one, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {n: f"p{n}" for n in range(20)}
