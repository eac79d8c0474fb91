"""Build nftables rules for the addresses that a sandboxed command may reach."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import chain

import psutil

Address = IPv4Address | IPv6Address

GATEWAY, NAMESERVER, OWN = (IPv4Address(f"198.18.77.{n}") for n in (2, 3, 100))
"""The forwarder's addresses inside the sandbox. The range is reserved for benchmarks."""
GATEWAY6, NAMESERVER6, OWN6 = (IPv6Address(f"fd00::{n}") for n in ("2", "3", "100"))
NETWORK = "198.18.77.0/24"
LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
"""The worker address behind the gateway."""
DEVICE = "tap0"

DENIED = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",  # carriers' own
    "127.0.0.0/8",
    "168.63.129.16/32",  # metadata of a cloud, at a public address
    "169.254.0.0/16",  # link-local, with most clouds' metadata
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",  # 6to4 relays
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",  # multicast and reserved, to the broadcast address
)
PUBLIC6 = "2000::/3"
"""Everything else is private, link-local, multicast, mapped, NAT64 or reserved."""
DENIED6 = (
    "2001::/23",  # Teredo and its like
    "2001:db8::/32",
    "2002::/16",  # 6to4
    "3fff::/20",
)


class Egress(StrEnum):
    """What a command with a network may reach (`EVALHUB_EGRESS`), the narrowest first."""

    NONE = "none"
    INTERNET = "internet"
    FULL = "full"

    def within(self, other: Egress) -> bool:
        """Return whether it is at most as broad as another policy."""
        order = list(Egress)
        return order.index(self) <= order.index(other)


@dataclass(frozen=True)
class Allowed:
    """A service that may be reached although its address is not public."""

    host: str
    port: int

    def addresses(self) -> tuple[Address, ...]:
        """Return the host's current addresses, empty if it can't be resolved."""
        try:
            entries = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError:
            return ()
        return tuple(dict.fromkeys(ip_address(str(each[4][0]).partition("%")[0]) for each in entries))


def parse_allowed(words: Iterable[str]) -> tuple[Allowed, ...]:
    """Parse EVALHUB_EGRESS_ALLOW. Raises `ValueError` with a sentence."""
    return tuple(map(_parse_allowed, words))


def _parse_allowed(word: str) -> Allowed:
    host, _, port = word.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if (
        not host
        or not port.isascii()
        or not port.isdigit()
        or not 0 < int(port) < 65536
        or not _is_host(host)
    ):
        raise ValueError(
            f"EVALHUB_EGRESS_ALLOW: '{word}' is not 'host:port'. Write a name or an address, a colon and a port, "
            "such as models.internal:8000 or [fd12::1]:443."
        )
    allowed = Allowed(host, int(port))
    if any(each.is_loopback and each not in LOOPBACK for each in _literal(host)):
        raise ValueError(
            f"EVALHUB_EGRESS_ALLOW: '{word}' is a loopback address that sandboxes cannot reach. Use 127.0.0.1."
        )
    return allowed


def _literal(host: str) -> tuple[Address, ...]:
    try:
        return (ip_address(host),)
    except ValueError:
        return ()


def _is_host(host: str) -> bool:
    return bool(_literal(host)) or not any(sign in host for sign in "/:*@[] ")


def worker_addresses() -> tuple[Address, ...]:
    """Return the addresses of this machine, some of which may be public."""
    interfaces = chain.from_iterable(psutil.net_if_addrs().values())
    of_ip = (each for each in interfaces if each.family in (socket.AF_INET, socket.AF_INET6))
    return tuple(ip_address(each.address.partition("%")[0]) for each in of_ip)


@dataclass(frozen=True)
class Opening:
    """A service's address inside the sandbox and its address for the forwarder."""

    asked: Address
    port: int

    @property
    def reached(self) -> Address:
        """Return the forwarder's address; the worker's loopback is behind the gateway."""
        if not self.asked.is_loopback:
            return self.asked
        return GATEWAY if self.asked.version == 4 else GATEWAY6


def list_openings(allowed: Iterable[Allowed]) -> tuple[Opening, ...]:
    """Return the allowed services by address, without loopback addresses that the forwarder can't reach."""
    services = (Opening(address, service.port) for service in allowed for address in service.addresses())
    return tuple(
        dict.fromkeys(
            service for service in services if not service.asked.is_loopback or service.asked in LOOPBACK
        )
    )


def write_ruleset(opened: Sequence[Opening], denied: Iterable[Address]) -> str:
    """Return the rules for a sandbox: public addresses, the forwarder's resolver and allowed services.

    `denied` lists public addresses to block: the worker's own.
    """
    ours = tuple(denied)
    lines = [
        *_redirections([each for each in opened if each.asked == LOOPBACK[0]]),
        "  chain output {",
        "    type filter hook output priority 0; policy drop",
        '    oifname "lo" accept',
        "    icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } accept",
        *_accept_rules(Opening(NAMESERVER, 53), Opening(NAMESERVER6, 53), *opened),
        *_reject_rules("ip daddr", chain(DENIED, (str(each) for each in ours if each.version == 4))),
        *_reject_rules("ip6 daddr", chain(DENIED6, (str(each) for each in ours if each.version == 6))),
        *_reject_rules("ip6 daddr !=", [PUBLIC6]),
        "    accept",
        "  }",
    ]
    return "\n".join(["table inet egress {", *lines, "}", ""])


def _redirections(loopback: Sequence[Opening]) -> Iterator[str]:
    """Return rules that make the worker's loopback services available at the same address inside."""
    if not loopback:
        return
    yield "  chain towards {"
    yield "    type nat hook output priority -100"
    for opening in loopback:
        for protocol in ("tcp", "udp"):
            yield f"    ip daddr {opening.asked} {protocol} dport {opening.port} dnat ip to {GATEWAY}"
    yield "  }"
    yield "  chain out {"
    yield "    type nat hook postrouting priority 100"
    yield f'    oifname "{DEVICE}" ip saddr 127.0.0.0/8 snat ip to {OWN}'
    yield "  }"


def _accept_rules(*services: Opening) -> Iterator[str]:
    for service in services:
        family = "ip" if service.reached.version == 4 else "ip6"
        for protocol in ("tcp", "udp"):
            yield f"    {family} daddr {service.reached} {protocol} dport {service.port} accept"


def _reject_rules(match: str, networks: Iterable[str]) -> Iterator[str]:
    for network in networks:
        yield f"    {match} {network} meta l4proto tcp reject with tcp reset"
        yield f"    {match} {network} reject"


def resolver_settings(of_worker: str) -> str:
    """Return the sandbox's /etc/resolv.conf: the worker's, with the forwarder as its name server."""
    words = [line.split() for line in of_worker.splitlines()]
    servers = [line[1] for line in words if line[:1] == ["nameserver"] and len(line) > 1]
    only6 = bool(servers) and all(":" in server for server in servers)
    settings = [" ".join(line) for line in words if line[:1] in (["search"], ["options"], ["domain"])]
    return "\n".join([f"nameserver {NAMESERVER6 if only6 else NAMESERVER}", *settings, ""])
