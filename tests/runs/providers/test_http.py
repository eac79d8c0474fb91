from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from evaluators.criteria import Criteria
from evaluators.evaluate import evaluate
from evaluators.evidence import Evidence
from evaluators.expectations import Expect, ToolCall, tool_calls
from evaluators.model import Usage
from evaluators.transcripts import parse
from runs.providers import make_provider
from runs.providers.base import Invocation, Provider, ProviderError, Recording
from runs.providers.outbound import Outbound
from runs.targets import define, resolve
from scenarios.formats.problems import ScenarioFileError
from tests.runs.containments import LOOPBACK, containment
from tests.runs.servers import Reply, Request, serving

WEATHER = {
    "response": "Cold in Oslo.",
    "toolCalls": [{"name": "get_weather", "success": True, "durationMs": 12, "params": {"city": "Oslo"}}],
    "usage": {"inputTokens": 30, "outputTokens": 5},
    "costUsd": 0.01,
}


def provider(
    url: str, outbound: Outbound = LOOPBACK, env: dict[str, str] | None = None, **fields
) -> Provider:
    definition = define({"name": "agent", "provider": "http", "url": url, **fields})
    return make_provider(resolve(definition, env or {}), containment(outbound=outbound))


def invocation(**changes: Any) -> Invocation:
    nowhere = Path("/nonexistent")
    given = {"prompt": "weather?", "key": "k", "timeout_seconds": 10.0, **changes}
    return Invocation(workspace=nowhere, scratch=nowhere, **given)


def asked(reply: Reply | None = None, given: Invocation | None = None, **fields) -> tuple[Request, Recording]:
    reply = reply or Reply(WEATHER)
    with serving(reply) as server:
        recording = provider(server.url + "/chat", **fields).invoke(given or invocation())
    (request,) = server.requests
    return request, recording


def judged(recording: Recording, **expect: Any):
    transcript = parse(recording.parser, recording.raw, recording.events)
    evidence = Evidence(
        transcript,
        answer=recording.answer if recording.answer is not None else transcript.answer,
        timed_out=recording.timed_out,
        seconds=recording.seconds,
        usage=recording.usage or transcript.usage,
    )
    return evaluate(Criteria(expect=Expect(**expect)), evidence)


def test_it_sends_the_message_and_takes_the_answer():
    request, recording = asked()
    assert (request.method, request.path, request.json) == ("POST", "/chat", {"message": "weather?"})
    assert recording.answer == "Cold in Oslo."
    assert (recording.usage, recording.cost_usd, recording.exit_code) == (Usage(30, 5), 0.01, 0)
    assert json.loads(recording.raw) == WEATHER


def test_the_assertions_see_what_the_endpoint_tells():
    _, recording = asked()
    transcript = parse(recording.parser, recording.raw, recording.events)
    assert tool_calls(transcript) == (ToolCall("get_weather", {"city": "Oslo"}, True, 0.012),)
    held = judged(recording, tools_called=["get_weather"], no_tool_errors=True, response_contains=["Oslo"])
    assert held.outcome == "pass"


def test_a_failed_call_fails_the_case():
    calls = [{"name": "get_weather", "error": "down"}]
    _, recording = asked(Reply({"response": "", "toolCalls": calls}))
    assert judged(recording, no_tool_errors=True).outcome == "fail"


def test_it_sends_what_the_target_says():
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
        target = resolve(definition, variables)
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


def test_every_trial_has_a_session_of_its_own():
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


def test_it_finds_the_answer_where_the_target_says():
    told = {"data": {"say": "hi", "used": [{"name": "w", "durationMs": 5}]}}
    _, recording = asked(Reply(told), outputField="data.say", toolCallsField="data.used")
    assert recording.answer == "hi"
    assert judged(recording, tools_called=["w"], response_contains=["hi"]).outcome == "pass"
    assert json.loads(recording.raw) == told


def test_it_reads_a_streamed_answer():
    pieces = (b'data: {"delta": "Cold in"}\n\n', b'data: {"delta": " Oslo."}\n\n', b"data: [DONE]\n\n")
    headers = {"Content-Type": "text/event-stream"}
    _, recording = asked(Reply(pieces=pieces, headers=headers, delay=0.05))
    assert recording.answer == "Cold in Oslo."
    assert judged(recording, response_contains=["in Oslo"]).outcome == "pass"


def test_the_latency_is_from_sending_to_the_last_byte():
    body = json.dumps(WEATHER).encode()
    with serving(Reply(pieces=(body[:9], body[9:]), delay=0.2)) as server:
        agent = provider(server.url)
        began = time.monotonic()
        recording = agent.invoke(invocation())
        whole = time.monotonic() - began
    assert 0.4 <= recording.seconds <= whole
    assert judged(recording, max_latency_ms=350).outcome == "fail"


@pytest.mark.parametrize("limits", [{"timeout_seconds": 0.4}, {"given": 0.4}], ids=["target's", "trial's"])
def test_too_late_an_answer_fails_with_timeout(limits):
    given = invocation(timeout_seconds=limits.pop("given", 30.0))
    _, recording = asked(Reply(WEATHER, delay=1.0), given, **limits)
    assert (recording.timed_out, recording.seconds) == (True, 0.4)
    evaluation = judged(recording, response_non_empty=True)
    assert evaluation.outcome == "fail"
    errors = [score.detail["error"] for score in evaluation.scores if score.layer == "assertions"]
    assert errors == ["timeout"]


def test_it_stops_when_it_is_cancelled():
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    _, recording = asked(Reply(WEATHER, delay=1.0), invocation(cancelled=stop.is_set))
    assert recording.cancelled
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply({"error": "boom"}, status=500), "answered HTTP 500 Internal Server Error: .*boom"),
        (Reply({"resumeToken": "t"}, status=409), "HTTP 409"),
        (Reply(status=302, headers={"Location": "/other"}), "HTTP 302 Found .to /other."),
        (Reply({"reply": "hi"}), "no field for its text"),
        (Reply(pieces=(b'{"response": "h',)), "begins like JSON"),
        (Reply(pieces=(b"x" * (1 << 20),) * 17), "more than 16 MB"),
    ],
    ids=["500", "409", "redirect", "unknown shape", "cut", "flood"],
)
def test_an_endpoint_that_does_not_answer_properly_is_an_error(reply, told):
    with pytest.raises(ProviderError, match=told) as caught:
        asked(reply)
    assert caught.value.kind == "endpoint"


def test_an_endpoint_that_is_not_there_is_an_error():
    with serving(Reply()) as server:
        url = server.url
    with pytest.raises(ProviderError, match="The endpoint of the target 'agent' cannot be reached") as caught:
        provider(url).invoke(invocation())
    assert caught.value.kind == "endpoint"


def test_it_calls_no_address_that_is_not_allowed():
    with serving(Reply(WEATHER)) as server:
        with pytest.raises(ProviderError, match="EVALHUB_HTTP_ALLOW"):
            provider(server.url, Outbound()).invoke(invocation())
        provider(server.url, Outbound.of(["127.0.0.1"], loopback=False)).invoke(invocation())
    assert len(server.requests) == 1


@pytest.mark.parametrize(("url", "well"), [("http://h/x", True), ("h:3000", False), ("ftp://h", False)])
def test_it_tells_whether_its_address_can_be_one(url, well):
    availability = provider(url).check()
    assert availability.available is well
    assert well or "give `url`" in availability.sentence


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"inputField": "a..b"}, "is no path"),
        ({"method": "BREW"}, "method"),
        ({"apiKey": "literal"}, "api_key|apiKey"),
    ],
)
def test_a_wrong_setting_is_refused(fields, told):
    with pytest.raises(ScenarioFileError, match=told):
        define({"name": "agent", "provider": "http", "url": "http://h", **fields})


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
