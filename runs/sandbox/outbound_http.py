"""Make HTTP requests over connections whose address was checked on connecting.

The check runs after the resolver, on each connection, so DNS rebinding, redirects and unusual address
notations can't bypass it. Import it lazily, because httpx takes a tenth of a second.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from socket import SOCK_STREAM, getaddrinfo
from typing import Any

import httpcore
import httpx

from evalhub.lib.limits import LARGEST_MESSAGE
from runs.sandbox.outbound import AddressRefused, Outbound, parse_address

CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.2


class DeadlineExceeded(Exception):
    """The exchange exceeded its time limit."""


class Stopped(Exception):
    """The exchange was cancelled."""


class AnswerTooLong(httpx.RequestError):
    """An answer is longer than its client reads."""


@dataclass(frozen=True)
class Deadline:
    """Time limit of one exchange in seconds, counted from creation, and its cancellation."""

    seconds: float
    stopped: Callable[[], bool] = lambda: False
    _began: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Return the seconds left. Raises `DeadlineExceeded` or `Stopped`."""
        if self.stopped():
            raise Stopped
        left = self._began + self.seconds - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded
        return left


Resolve = Callable[[str, int], list[str]]
"""Returns a host's addresses as texts. Raises `OSError`."""


def resolve_host(host: str, port: int) -> list[str]:
    """Return a host's addresses from the system's resolver."""
    entries = getaddrinfo(host, port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def make_client(
    outbound: Outbound,
    patience: Deadline,
    *,
    follow_redirects: bool = False,
    longest: int = LARGEST_MESSAGE,
    resolve: Resolve = resolve_host,
) -> httpx.Client:
    """Return a client for one exchange, whose answers have up to `longest` bytes.

    Its requests raise `AddressRefused`, `DeadlineExceeded`, `Stopped` and `AnswerTooLong` beside httpx's own errors.
    """
    return httpx.Client(
        transport=Transport(Backend(lambda: outbound, resolve, patience), longest),
        trust_env=False,
        timeout=None,  # noqa: S113  # the deadline limits the exchange
        follow_redirects=follow_redirects,
        max_redirects=5,
    )


class Transport(httpx.BaseTransport):
    """Sends httpx requests over httpcore connections from the address-checking backend.

    Answers are asked for as they are: a small compressed one can fill the memory.
    """

    def __init__(self, backend: httpcore.NetworkBackend, longest: int = LARGEST_MESSAGE) -> None:
        """Read answers of up to `longest` bytes."""
        self._pool = httpcore.ConnectionPool(ssl_context=_context(), network_backend=backend)
        self._longest = longest

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises the backend's and httpx's errors, and `AnswerTooLong`."""
        url = request.url
        request.headers["Accept-Encoding"] = "identity"
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx(request):
            answer = self._pool.handle_request(asked)
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer, request, self._longest),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response, request: httpx.Request, longest: int) -> None:
        self._answer = answer
        self._request = request
        self._longest = longest

    def __iter__(self) -> Iterator[bytes]:
        encoding = httpx.Headers(self._answer.headers).get("content-encoding", "identity")
        left = self._longest
        with _as_httpx(self._request):
            for chunk in self._answer.iter_stream():
                if encoding.lower() != "identity":
                    raise httpx.DecodingError(
                        f"the answer is compressed ({encoding}), which was not asked for"
                    )
                left -= len(chunk)
                if left < 0:
                    raise AnswerTooLong(f"the answer has more than {self._longest >> 20} MB")
                yield chunk

    def close(self) -> None:
        self._answer.close()


@contextmanager
def _as_httpx(request: httpx.Request) -> Iterator[None]:
    """Map httpcore errors to the httpx errors of the same names."""
    try:
        yield
    except tuple(_ERRORS) as error:
        kind = next(known for known in _ERRORS if isinstance(error, known))
        raise _ERRORS[kind](str(error), request=request) from error


_ERRORS: Mapping[type[Exception], type[httpx.RequestError]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.TimeoutException: httpx.TimeoutException,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.NetworkError: httpx.NetworkError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
    httpcore.ProtocolError: httpx.ProtocolError,
}
"""Specific errors before general ones."""


@cache
def _context() -> ssl.SSLContext:
    # Cached, because loading the certificates takes longer than a request.
    return httpx.create_ssl_context(trust_env=False)


class Backend(httpcore.NetworkBackend):
    """Connects to checked addresses: each connection resolves its name once."""

    def __init__(
        self,
        outbound: Callable[[], Outbound],
        resolve: Resolve = resolve_host,
        patience: Deadline | None = None,
    ) -> None:
        """Check each connection against `outbound`; without a deadline the client's timeouts apply."""
        self._outbound = outbound
        self._resolve = resolve
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
        """Connect to the first address that may be called and answers. Raises `AddressRefused`."""
        outbound = self._outbound()
        failure: Exception | None = None
        for address in self._addresses(host, port):
            if refusal := outbound.refusal(host, parse_address(address)):
                failure = failure or AddressRefused(refusal)
                continue
            try:
                asked = CONNECT_SECONDS if timeout is None else min(timeout, CONNECT_SECONDS)
                stream = self._inner.connect_tcp(
                    address,
                    port,
                    min(self._patience.left(), asked) if self._patience else asked,
                    local_address,
                    socket_options,
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self._patience) if self._patience else stream
        raise failure or httpcore.ConnectError(f"{host} has no address")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise httpcore.ConnectError("Unix sockets can't be called")

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            return self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error


class _Stream(httpcore.NetworkStream):
    """A connection that waits in short steps, to notice the deadline."""

    def __init__(self, inner: httpcore.NetworkStream, patience: Deadline) -> None:
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
            raise DeadlineExceeded from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        wait = min(self._patience.left(), CONNECT_SECONDS)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, wait), self._patience)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
