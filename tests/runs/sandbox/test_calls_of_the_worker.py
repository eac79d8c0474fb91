"""Calls of the worker: whatever library makes them, they reach no address that was not checked."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any

import httpx
import openai
import pytest

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.model import CompletionError, CompletionRequest
from runs.engine.mcp.mcp_http import fetch_tools
from runs.engine.mcp.mcp_stdio import NoAnswer
from runs.errors import ProviderError
from runs.sandbox.outbound import AddressRefused, Outbound
from runs.sandbox.outbound_http import Backend, Deadline, Transport, make_client
from runs.targets.language_models.batches import batching_of
from runs.targets.language_models.language_model import LanguageModel, complete_through_model
from runs.targets.language_models.litellm import allow_calls, client_session, load_litellm
from runs.targets.providers.access import resolve_access
from runs.targets.providers.healthcheck import ask_address
from runs.targets.providers.registry import make_provider
from runs.targets.providers.retry import refusal_in
from tests.model_server import Answer, serving
from tests.runs.sandbox.test_one_door import ROOT
from tests.runs.targets.providers.model_targets import CONTAINMENT, KINDS, asked, target_of

HERE = Outbound.of(["127.0.0.1/32"], loopback=False)
"""What an operator lists who has a model server of the team's own."""


@contextmanager
def answering(address: str, answer: Callable[[Any], None]) -> Iterator[tuple[str, list[str]]]:
    """Serve at a loopback address; give its own address and the paths that were asked for."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.do_GET()

        def do_GET(self) -> None:
            seen.append(self.path)
            answer(self)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{address}:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def forbidden(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "2")
    handler.end_headers()
    handler.wfile.write(b"{}")


@contextmanager
def redirecting() -> Iterator[tuple[str, list[str], list[str]]]:
    """Serve what leads from an address that is allowed to one that is not."""
    with answering("127.0.0.2", forbidden) as (inner, reached):

        def lead(handler: Any) -> None:
            handler.send_response(307)
            handler.send_header("location", f"{inner}{handler.path}")
            handler.send_header("content-length", "0")
            handler.end_headers()

        with answering("127.0.0.1", lead) as (outer, seen):
            yield outer, seen, reached


class Server:
    """Where targets lead to, as `target_of` takes it."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.mark.parametrize(
    "address",
    [
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:db8::5efe:7f00:1",
        "2606:2800:220:1:0:5efe:10.0.0.5",
        "2606:2800:220:1:200:5efe:10.0.0.5",
    ],
)
def test_an_address_is_judged_by_the_ipv4_address_within(address):
    assert Outbound().refusal("host", ip_address(address)) != ""


def test_public_addresses_of_both_versions_are_called():
    for address in ("93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"):
        assert Outbound().refusal("host", ip_address(address)) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_not_followed_to_an_address_that_is_not_allowed(kind):
    with redirecting() as (url, seen, reached):
        provider = LanguageModel(target_of(Server(url), kind, max_retries=0), CONTAINMENT_OF(HERE))  # type: ignore[arg-type]
        with pytest.raises(ProviderError, match=r"^The target '.+' can't be called: |: HTTP 307: "):
            provider.invoke(asked())
        assert seen
    assert reached == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_judge_is_not_followed_to_an_address_that_is_not_allowed(kind):
    with redirecting() as (url, seen, reached):
        judge = complete_through_model(target_of(Server(url), kind, max_retries=0), HERE)  # type: ignore[arg-type]
        with pytest.raises(CompletionError):
            judge(CompletionRequest(user="?"))
        assert seen
    assert reached == []


@pytest.mark.parametrize("kind", ["litellm", "azure", "anthropic"])
@pytest.mark.parametrize("what", ["submit", "poll", "fetch", "cancel"])
def test_batches_are_not_followed_to_an_address_that_is_not_allowed(kind, what):
    with redirecting() as (url, seen, reached):
        batching: Any = batching_of(
            resolve_access(target_of(Server(url), kind, max_retries=0), outbound=HERE)
        )  # type: ignore[arg-type]
        calls = {
            "submit": lambda: batching.submit_batch({"1": asked()}),
            "poll": lambda: batching.poll_batch("b"),
            "fetch": lambda: batching.fetch_batch("b"),
            "cancel": lambda: batching.cancel_batch("b"),
        }
        with pytest.raises(ProviderError):
            calls[what]()
        assert seen
    assert reached == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_worker_may_call_is_checked_where_it_connects(kind):
    with serving() as models:
        models.script.answer = lambda prompt: Answer("Paris.")
        target = target_of(models, kind, max_retries=0)
        assert LanguageModel(target, CONTAINMENT).invoke(asked()).answer == "Paris."
        # A connection that another was allowed to make is not used again.
        litellm, access = load_litellm(), resolve_access(target)
        with allow_calls(Outbound()), pytest.raises(openai.APIError) as caught:
            litellm.completion(
                model=access.model,
                messages=[{"role": "user", "content": "?"}],
                max_retries=0,
                **access.connection,
            )
        assert refusal_in(caught.value)


def test_litellm_fetches_no_picture_from_within():
    """It fetches what a message names as an address, with a client of its own."""
    with answering("127.0.0.1", forbidden) as (url, reached):
        litellm = load_litellm()
        with allow_calls(Outbound()), pytest.raises(AddressRefused):
            litellm.module_level_client.get(f"{url}/x.png")
    assert reached == []


def public_then_inner() -> tuple[Callable[[str, int], list[str]], list[str]]:
    """A resolver that says something else the second time, and what it was asked."""
    answers, seen = iter([["127.0.0.1"], ["127.0.0.2"]]), []

    def resolve(host: str, port: int) -> list[str]:
        seen.append(host)
        return next(answers)

    return resolve, seen


def test_the_address_that_was_checked_is_the_one_that_is_called():
    resolve, asked_for = public_then_inner()
    with answering("127.0.0.1", forbidden) as (url, seen):
        port = url.rpartition(":")[2]
        with make_client(HERE, Deadline(10.0), resolve=resolve) as calls:
            assert calls.get(f"http://model.example:{port}/a").status_code == 200
        assert (asked_for, seen) == (["model.example"], ["/a"])
        with (
            make_client(HERE, Deadline(10.0), resolve=resolve) as calls,
            pytest.raises(AddressRefused, match=r"127\.0\.0\.2"),
        ):
            calls.get(f"http://model.example:{port}/b")
    assert seen == ["/a"]


def test_a_redirect_is_resolved_and_checked_anew():
    resolve, _ = public_then_inner()

    def lead(handler: Any) -> None:
        handler.send_response(302)
        handler.send_header("location", f"http://other.example:{port}/inner")
        handler.send_header("content-length", "0")
        handler.end_headers()

    with answering("127.0.0.1", lead) as (url, seen):
        port = url.rpartition(":")[2]
        with (
            make_client(HERE, Deadline(10.0), follow_redirects=True, resolve=resolve) as calls,
            pytest.raises(AddressRefused),
        ):
            calls.get(f"http://model.example:{port}/a")
    assert seen == ["/a"]


def compressed(handler: Any) -> None:
    """Answer with much in a few bytes, whatever was asked for."""
    content = gzip.compress(b'"' + b"a" * (1 << 20) + b'"')
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-encoding", "gzip")
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def endless(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b" " * (1 << 20))


def one_exchange(url: str) -> httpx.Response:
    with make_client(HERE, Deadline(20)) as http:
        return http.get(url)


def a_models_exchange(url: str) -> httpx.Response:
    with allow_calls(HERE):
        return client_session().post(url)


@pytest.mark.parametrize("exchange", [one_exchange, a_models_exchange])
@pytest.mark.parametrize(
    ("answer", "message"), [(compressed, r"compressed \(gzip\)"), (endless, "more than 16 MB")]
)
def test_an_answer_cannot_fill_the_workers_memory(exchange, answer, message):
    with answering("127.0.0.1", answer) as (url, seen), pytest.raises(httpx.RequestError, match=message):
        exchange(url)
    assert seen == ["/"]


def test_a_health_check_reads_no_body():
    with answering("127.0.0.1", endless) as (url, _):
        assert ask_address(url, 20, HERE) == ""


def test_pages_of_an_mcp_server_have_a_size_in_all():
    def page(handler: Any) -> None:
        padding = "a" * (3 << 20)
        result = {"tools": [{"name": "x", "description": padding}], "nextCursor": "on"}
        content = json.dumps({"jsonrpc": "2.0", "id": max(1, len(seen) - 1), "result": result}).encode()
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    with (
        answering("127.0.0.1", page) as (url, seen),
        make_client(HERE, Deadline(20)) as http,
        pytest.raises(NoAnswer, match="the responses have more than 16 MB"),
    ):
        fetch_tools(http, url)


def test_results_of_a_batch_may_be_longer():
    with answering("127.0.0.1", lambda handler: _long(handler, 20 << 20)) as (url, _):
        with allow_calls(HERE, longest=LARGEST_RECORD):
            assert len(client_session().get(url).content) == 20 << 20
        with allow_calls(HERE), pytest.raises(httpx.RequestError, match="more than 16 MB"):
            client_session().get(url)


def _long(handler: Any, length: int) -> None:
    handler.send_response(200)
    handler.send_header("content-length", str(length))
    handler.end_headers()
    with suppress(OSError):
        handler.wfile.write(b" " * length)


def test_errors_of_a_connection_are_httpx_errors():
    with (
        pytest.raises(httpx.ConnectError, match="has no address"),
        make_client(HERE, Deadline(5.0), resolve=lambda *_: []) as calls,
    ):
        calls.get("http://model.example/")
    with pytest.raises(httpx.ConnectError):
        httpx.Client(transport=Transport(Backend(lambda: HERE))).get("http://127.0.0.1:9/")


def CONTAINMENT_OF(outbound: Outbound) -> Any:
    from dataclasses import replace

    return replace(CONTAINMENT, outbound=outbound)


def test_no_other_client_is_made():
    """Only one module makes a client; the proxy of MCP servers runs inside the sandbox."""
    made = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for word in (
            "httpx.Client(",
            "httpx.request(",
            "httpx.get(",
            "httpx.post(",
            "import requests",
            "urlopen(",
            "http.client",
        )
        if word in path.read_text(encoding="utf-8")
    }
    assert made == {"sandbox/outbound_http.py", "engine/mcp/mcp_face.py"}


def test_make_provider_hands_on_what_may_be_called():
    with redirecting() as (url, _, reached):
        provider = make_provider(target_of(Server(url), "litellm", max_retries=0), CONTAINMENT_OF(Outbound()))  # type: ignore[arg-type]
        assert "EVALHUB_HTTP_ALLOW" in provider.check().sentence
    assert reached == []
