"""Decide which addresses a worker may call for targets, so that they can't reach its own network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

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
