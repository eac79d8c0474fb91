"""HTTP endpoints that are late, broken, away or not allowed, and targets that say it wrongly."""

from __future__ import annotations

import threading
import time

import pytest

from runs.errors import ProviderError
from runs.sandbox.outbound import Outbound
from runs.targets.definitions import define
from scenarios.formats.parsed import ScenarioFileError
from tests.runs.servers import Reply, serving
from tests.runs.targets.providers.endpoints import WEATHER, asked, invocation, judged, provider

pytestmark = pytest.mark.one_database

BEGUN = b'data: {"choices": [{"delta": {"content": "It is"}}]}\n\n'


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limits", [{"timeout_seconds": 2.0}, {"given": 2.0}], ids=["target's", "trial's"])
def test_too_late_an_answer_fails_with_timeout(limits):
    given = invocation(timeout_seconds=limits.pop("given", 30.0))
    _, recording = asked(Reply(WEATHER, delay=30.0), given, **limits)
    assert (recording.timed_out, recording.seconds) == (True, 2.0)
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
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply({"error": "boom"}, status=500), "answered HTTP 500 Internal Server Error: .*boom"),
        (Reply({"resumeToken": "t"}, status=409), "HTTP 409"),
        (Reply(status=302, headers={"Location": "/other"}), "HTTP 302 Found .to /other."),
        (Reply({"reply": "hi"}), "no field for its text"),
        (Reply(pieces=(b'{"response": "h',)), "begins like JSON"),
        (Reply(pieces=(b"x" * (1 << 20),) * 17), "more than 16 MB"),
        (Reply(pieces=(b"",)), "answer is empty"),
        (Reply(pieces=(b"data: [DONE]\n\n",)), "no field for its text"),
        (Reply({"response": "", "toolCalls": [], "error": "quota"}), "error: quota"),
        (Reply({"response": "Too many requests", "error": True}), "answered with an error: The endpoint reported"),
        (Reply(pieces=(BEGUN, b'data: {"error": {"message": "overloaded"}}\n\n')), "an error: overloaded"),
        (Reply(pieces=(b'data: {"choices": [], "error": {"message": "overloaded"}}\n\n',)), "error: overloaded"),
        (Reply(pieces=(BEGUN, b'data: {"type": "done", "error": "overloaded"}\n\n')), "an error: overloaded"),
    ],
    ids=[
        *("500", "409", "redirect", "unknown shape", "cut", "flood", "nothing", "no event"),
        *(
            "error without calls",
            "error as text",
            "error in a stream",
            "error in a chunk",
            "error at the end",
        ),
    ],
)  # fmt: skip
def test_an_endpoint_that_does_not_answer_properly_is_an_error(reply, message):
    with pytest.raises(ProviderError, match=message) as caught:
        asked(reply)
    assert caught.value.kind == "endpoint"


def test_an_endpoint_that_answers_a_failure_too_slowly_is_an_error():
    reply = Reply(pieces=(b"busy",) * 40, delay=0.1, status=503)
    with pytest.raises(ProviderError, match="answered HTTP 503") as raised:
        asked(reply, invocation(timeout_seconds=1.0))
    assert raised.value.kind == "endpoint"


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
def test_it_checks_its_address(url, well):
    availability = provider(url).check()
    assert availability.available is well
    assert well or "give `url`" in availability.sentence


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inputField": "a..b"}, "isn't a path"),
        ({"method": "BREW"}, "method"),
        ({"apiKey": "literal"}, "api_key|apiKey"),
    ],
)
def test_a_wrong_setting_is_refused(fields, message):
    with pytest.raises(ScenarioFileError, match=message):
        define({"name": "agent", "provider": "http", "url": "http://h", **fields})
