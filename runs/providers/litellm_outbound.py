"""Hands litellm, and clients like it, the connections that are checked: whatever it asks, it calls no address that this worker may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import httpx

from runs.containment.outbound import Outbound
from runs.containment.outbound_http import Backend, Resolve, Transport, resolve_host

T = TypeVar("T")

_outbound: ContextVar[Outbound] = ContextVar("outbound", default=Outbound())  # noqa: B039  # immutable
"""What the request of this thread may call; without one, public addresses only."""


class _ByOutbound(httpx.BaseTransport):
    """Connections are kept and used again, and only by requests that may call the same addresses."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._transports: dict[Outbound, Transport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        allowed = _outbound.get()
        transport = self._transports.get(allowed)
        if transport is None:
            made = Transport(Backend(lambda: allowed, self._resolve))
            transport = self._transports.setdefault(allowed, made)
        return transport.handle_request(request)


class _SharedClient(httpx.Client):
    def close(self) -> None:
        """Stay open: libraries close what they were given when they let go of a client of theirs."""


@cache
def _transport(resolve: Resolve = resolve_host) -> _ByOutbound:
    return _ByOutbound(resolve)


@cache
def session(resolve: Resolve = resolve_host) -> httpx.Client:
    """Return the client of this process for libraries that take one; what it may call is said by `calling`."""
    return _SharedClient(
        transport=_transport(resolve), trust_env=False, timeout=None
    )  # each request has its own


def guard(litellm: Any, resolve: Resolve = resolve_host) -> None:
    """Let every client of litellm connect through checked connections; redirects are followed nowhere unchecked.

    OpenAI's and Azure's clients take litellm's `client_session`, all others are made with its `sync_transport`.
    """
    shared = session(resolve)
    litellm.client_session = shared
    litellm.sync_transport = _transport(resolve)
    # Made when litellm was imported, before there was a transport to make it with.
    litellm.module_level_client.client = shared
    litellm.in_memory_llm_clients_cache.flush_cache()


@contextmanager
def calling(outbound: Outbound) -> Iterator[None]:
    """Let the requests of this thread call what is allowed."""
    token = _outbound.set(outbound)
    try:
        yield
    finally:
        _outbound.reset(token)


def call_within(outbound: Outbound, call: Callable[[], T]) -> T:
    """Return what a call returns that may reach these addresses."""
    with calling(outbound):
        return call()
