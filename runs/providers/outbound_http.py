"""HTTP over connections whose address was checked when they were made.

The check is where the connection is made, behind the resolver: a name that leads elsewhere the second time,
a redirect, and an address in an unusual notation all come past it. Imported only where a request is made,
for httpx takes a tenth of a second.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from socket import SOCK_STREAM, gaierror, getaddrinfo
from typing import Any

import httpcore
import httpx

from runs.providers.outbound import AddressRefused, Outbound, parsed

CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.2
REDIRECTS = 5


class OutOfTime(Exception):
    """The whole exchange took longer than it may."""


class Stopped(Exception):
    """Somebody asked to stop meanwhile."""


@dataclass(frozen=True)
class Patience:
    """How long one exchange may take from its making on, in seconds, and whether it is still wanted."""

    seconds: float
    stopped: Callable[[], bool] = lambda: False
    _began: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Return the seconds left. Raises `OutOfTime` or `Stopped`."""
        if self.stopped():
            raise Stopped
        left = self._began + self.seconds - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left


def client(outbound: Outbound, patience: Patience, *, follow_redirects: bool = False) -> httpx.Client:
    """Return a client for one exchange.

    Its requests raise `AddressRefused`, `OutOfTime` and `Stopped` beside httpx's own errors.
    """
    return httpx.Client(
        transport=_Transport(outbound, patience),
        trust_env=False,
        timeout=None,  # noqa: S113  # patience bounds the whole
        follow_redirects=follow_redirects,
        max_redirects=REDIRECTS,
    )


class _Transport(httpx.HTTPTransport):
    def __init__(self, outbound: Outbound, patience: Patience) -> None:
        context = _context()
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context, network_backend=_Backend(outbound, patience)
        )


@cache
def _context() -> ssl.SSLContext:
    # Made once: reading the certificates takes longer than a request.
    return httpx.create_ssl_context(trust_env=False)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, outbound: Outbound, patience: Patience) -> None:
        self._outbound = outbound
        self._patience = patience
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception | None = None
        for address in _addresses(host, port):
            if refusal := self._outbound.refusal(host, parsed(address)):
                failure = AddressRefused(refusal)
                continue
            wait = min(self._patience.left(), CONNECT_SECONDS)
            try:
                stream = self._inner.connect_tcp(address, port, wait, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self._patience)
        raise failure or httpcore.ConnectError(f"{host} has no address")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise httpcore.ConnectError("sockets of this machine are not called")


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = getaddrinfo(host, port, type=SOCK_STREAM)
    except (gaierror, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class _Stream(httpcore.NetworkStream):
    """A connection on which every wait is short enough to notice the end of patience."""

    def __init__(self, inner: httpcore.NetworkStream, patience: Patience) -> None:
        self._inner = inner
        self._patience = patience

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            try:
                return self._inner.read(max_bytes, min(self._patience.left(), LOOK_SECONDS))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            self._inner.write(buffer, self._patience.left())
        except httpcore.WriteTimeout as error:
            raise OutOfTime from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        wait = min(self._patience.left(), CONNECT_SECONDS)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, wait), self._patience)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
