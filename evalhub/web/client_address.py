"""Who is at the other end: the client's address, past the proxies that the operator trusts."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest

UNIX_SOCKET = "unix"
"""In `EVALHUB_TRUSTED_PROXIES`: a proxy that connects over a Unix socket and so has no address."""


def client_address(request: HttpRequest) -> str:
    """Return the address nearest to this server that is not a trusted proxy; empty for a Unix socket.

    `X-Forwarded-For` counts only as far as trusted proxies wrote it, from its right end.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    hops = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).split(",")
    while hops and _is_trusted(address):
        hop = _plain(hops.pop().strip())
        if not hop:
            break
        address = hop
    return _plain(address)


def _plain(text: str) -> str:
    """Return an address as Python writes it, IPv4 in IPv6 as IPv4; empty where it is none."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return ""
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def _is_trusted(address: str) -> bool:
    plain = _plain(address)
    if not plain:
        return UNIX_SOCKET in settings.TRUSTED_PROXIES
    parsed = ipaddress.ip_address(plain)
    networks = (each for each in settings.TRUSTED_PROXIES if each != UNIX_SOCKET)
    return any(parsed in ipaddress.ip_network(network) for network in networks)
