"""Give litellm and similar clients checked connections, so that they reach only addresses that this worker may call."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import httpx

from evalhub.lib.limits import LARGEST_MESSAGE
from runs.sandbox.outbound import Outbound
from runs.sandbox.outbound_http import Backend, Transport

T = TypeVar("T")

_guarding, _guarded = Lock(), list[bool]()
_limits: ContextVar[tuple[Outbound, int]] = ContextVar(
    "limits", default=(Outbound(), LARGEST_MESSAGE)
)  # immutable
"""What this thread's request may call, by default public addresses only, and the bytes of an answer that it reads."""


class _ByOutbound(httpx.BaseTransport):
    """Reuses connections, but only for requests that may call the same addresses and read as much."""

    def __init__(self) -> None:
        self._transports: dict[tuple[Outbound, int], Transport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        limits = _limits.get()
        transport = self._transports.get(limits)
        if transport is None:
            created = Transport(Backend(lambda: limits[0]), limits[1])
            transport = self._transports.setdefault(limits, created)
        return transport.handle_request(request)

    def disconnect(self) -> None:
        """Close every connection; clients that share this transport only ever try to close it."""
        for transport in self._transports.values():
            transport.close()


class _SharedClient(httpx.Client):
    def close(self) -> None:
        """Stay open: libraries close the transport with each client that they discard."""


@cache
def _transport() -> _ByOutbound:
    shared = _ByOutbound()
    atexit.register(shared.disconnect)
    return shared


@cache
def client_session() -> httpx.Client:
    """Return this process's client for libraries that accept one; `calling` sets the addresses it may call."""
    return _SharedClient(transport=_transport(), trust_env=False, timeout=None)  # each request has its own


def guard(litellm: Any) -> None:
    """Make every client of litellm use checked connections; redirects are checked too.

    OpenAI's and Azure's clients take litellm's `client_session`, all others are made with its `sync_transport`.
    """
    shared = client_session()
    litellm.client_session = shared
    litellm.sync_transport = _transport()
    # litellm created these on import, before the checked transport existed.
    litellm.module_level_client.client = shared
    litellm.in_memory_llm_clients_cache.flush_cache()


def load_litellm() -> Any:
    """Return litellm, guarded; imported on first use because it takes seconds and a few hundred megabytes."""
    import litellm

    with _guarding:
        if not _guarded:
            litellm.suppress_debug_info = True
            litellm.telemetry = False
            guard(litellm)
            _guarded.append(True)
    return litellm


@contextmanager
def allow_calls(outbound: Outbound, *, longest: int = LARGEST_MESSAGE) -> Iterator[None]:
    """Let this thread's requests call the allowed addresses and read answers of up to `longest` bytes."""
    token = _limits.set((outbound, longest))
    try:
        yield
    finally:
        _limits.reset(token)


def call_within(outbound: Outbound, call: Callable[[], T]) -> T:
    """Return the result of a call that may reach these addresses."""
    with allow_calls(outbound):
        return call()
