"""Decide which addresses a worker may call for targets, so that they can't reach its own network.

Make HTTP requests over connections whose address was checked on connecting.

The check runs after the resolver, on each connection, so DNS rebinding, redirects and unusual address
notations can't bypass it. Import it lazily, because httpx takes a tenth of a second.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from socket import SOCK_STREAM, getaddrinfo
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from evalhub.lib.limits import LARGEST_MESSAGE
from runs.errors import ProviderError

Address = IPv4Address | IPv6Address

NEVER = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host, by another name
            "::/128",
            "169.254.0.0/16",  # link-local, with the metadata services of most clouds
            "fe80::/10",
            "fd00:ec2::/32",  # metadata services that are elsewhere
            "100.100.100.200/32",
            "168.63.129.16/32",
            "192.0.0.192/32",
            "224.0.0.0/4",  # many at once
            "ff00::/8",
            "255.255.255.255/32",
        ),
    )
)
"""Networks that are never called, even if allowed."""

_HOLDS_IPV4 = tuple(
    IPv6Network(each)
    for each in (
        "::/96",  # IPv4-compatible, as in ::127.0.0.1
        "::ffff:0:0:0/96",  # translated
        "64:ff9b::/96",  # behind a NAT64
    )
)
_PUBLIC6 = (IPv6Network("2000::/3"), *_HOLDS_IPV4)
"""IPv6 that can be public. Python calls all of the rest global that has no entry in the registry, such as fec0::/10."""
_RESERVED = (ip_network("192.88.99.0/24"), ip_network("3fff::/20"))
"""6to4 relays and examples in documents, which Python calls global."""
_ISATAP = 0x5EFE
"""Prefix of an embedded IPv4 address in the interface identifier; 0x0200 may precede it."""


class AddressRefused(ProviderError):
    """An address may not be called from this worker; the message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="configuration")


@dataclass(frozen=True)
class Outbound:
    """Which addresses may be called: public ones, and loopback or private ones listed here."""

    loopback: bool = False
    """Whether this machine itself may be called."""
    hosts: frozenset[str] = frozenset()
    """Names that may be called at any address outside `NEVER`."""
    networks: tuple[str, ...] = ()
    """Networks that may be called, as CIDR."""
    sends_key_openly: bool = False
    """Whether requests carry a key over plain http: then public addresses may be called only if they are listed."""

    @classmethod
    def of(cls, allow: Iterable[str], *, loopback: bool) -> Outbound:
        """Parse EVALHUB_HTTP_ALLOW. Raises `ValueError` with a sentence."""
        hosts: set[str] = set()
        networks: list[str] = []
        for word in allow:
            if network := _network(word):
                networks.append(network)
            else:
                if not word or any(sign in word for sign in "/:*@ "):
                    raise ValueError(
                        f"EVALHUB_HTTP_ALLOW: '{word}' is neither a host nor a network. "
                        "Write a name such as agents.internal, or a network such as 10.1.0.0/16."
                    )
                hosts.add(word.lower().rstrip("."))
        return cls(loopback, frozenset(hosts), tuple(networks))

    def refusal(self, host: str, address: Address) -> str:
        """Return a sentence on why an address may not be called; empty if it may."""
        for meaning in _meanings(address):
            if _within(meaning, NEVER):
                return f"{_describe(host, address)} is an address that is never called: choose another."
            if not self._allows(host, meaning):
                return (
                    f"{_describe(host, address)} is not public, and it is not allowed here. "
                    "Add the host or its network to EVALHUB_HTTP_ALLOW on the worker."
                )
            if self.sends_key_openly and _is_public(meaning) and not self._lists(host, meaning):
                return (
                    f"{_describe(host, address)} is public, and http would send the key unencrypted. "
                    "Use https, or add the host or its network to EVALHUB_HTTP_ALLOW on the worker."
                )
        return ""

    def _allows(self, host: str, address: Address) -> bool:
        if address.is_loopback and self.loopback:
            return True
        return self._lists(host, address) or _is_public(address)

    def _lists(self, host: str, address: Address) -> bool:
        return host.lower().rstrip(".") in self.hosts or _within(address, map(ip_network, self.networks))

    def with_key(self, url: str) -> Outbound:
        """Return what requests with a key to a URL may call."""
        return replace(self, sends_key_openly=urlsplit(url).scheme.lower() == "http")

    def hint(self, url: str) -> str:
        """Return a sentence on a key that leaves the machine unencrypted; empty if none does."""
        host = urlsplit(url).hostname or ""
        if not self.sends_key_openly or (self.loopback and _is_loopback(host)):
            return ""
        return f"The key is sent to {host} unencrypted, by http. Use https if the service has it."


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and not _within(address, _PUBLIC6):
        return False
    return address.is_global and not _within(address, _RESERVED)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _network(word: str) -> str:
    try:
        return str(ip_network(word.strip("[]")))
    except ValueError:
        return ""


def _meanings(address: Address) -> list[Address]:
    """Return an address and the IPv4 address that a gateway would translate it to."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    inner = [address.sixtofour, address.teredo[1] if address.teredo else None]
    if _within(address, _HOLDS_IPV4) or (int(address) >> 32) & 0xFDFFFFFF == _ISATAP:
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *(found for found in inner if found is not None)]


def _within(address: Address, networks: Iterable[object]) -> bool:
    # Addresses and networks of different IP versions never match.
    return any(address in network for network in networks)  # type: ignore[operator]


def _describe(host: str, address: Address) -> str:
    return str(address) if host in ("", str(address)) else f"{host} ({address})"


def parse_address(address: str) -> Address:
    """Parse an address from the resolver, which may include an interface."""
    return ip_address(address.split("%")[0])


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


def client(
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
