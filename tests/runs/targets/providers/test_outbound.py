from __future__ import annotations

import socket
import time
from ipaddress import ip_address

import httpx
import pytest

from runs.sandbox.outbound import AddressRefused, Outbound
from runs.sandbox.outbound_http import Deadline, DeadlineExceeded, Stopped, make_client
from runs.targets.providers.healthcheck import ask_address
from tests.runs.servers import Reply, serving

pytestmark = pytest.mark.one_database

CLOSED = Outbound()
LOOPBACK = Outbound(loopback=True)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "10.0.0.5",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "fc00::1",
        "::ffff:10.0.0.5",
        "64:ff9b::a00:5",
        "2002:a00:5::1",
        "198.18.0.1",
        "192.88.99.1",
        "fec0::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
    ],
)
def test_it_refuses_what_is_not_public(address):
    assert "EVALHUB_HTTP_ALLOW" in CLOSED.refusal("agent", ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_it_calls_what_is_public(address):
    assert CLOSED.refusal("agent", ip_address(address)) == ""


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_nothing_allows_metadata_and_link_local(address):
    everything = Outbound.of(["agent", "0.0.0.0/0", "::/0"], loopback=True)
    assert "never called" in everything.refusal("agent", ip_address(address))


@pytest.mark.parametrize(
    ("word", "host", "address", "allowed"),
    [
        ("10.1.0.0/16", "x", "10.1.2.3", True),
        ("10.1.0.0/16", "x", "10.2.2.3", False),
        ("10.1.2.3", "x", "10.1.2.3", True),
        ("fc00::/7", "x", "fd12::1", True),
        ("Agents.Internal", "agents.internal.", "192.168.0.7", True),
        ("agents.internal", "other.internal", "192.168.0.7", False),
        ("localhost", "localhost", "127.0.0.1", True),
        ("10.0.0.0/8", "x", "127.0.0.1", False),
    ],
)
def test_the_list_allows_hosts_and_networks(word, host, address, allowed):
    assert (Outbound.of([word], loopback=False).refusal(host, ip_address(address)) == "") is allowed


@pytest.mark.parametrize("word", ["http://x", "x:80", "*.internal", "10.0.0.0/99"])
def test_a_wrong_entry_in_the_list_is_reported(word):
    with pytest.raises(ValueError, match="is neither a host nor a network"):
        Outbound.of([word], loopback=False)


def get(url: str, outbound: Outbound, *, seconds: float = 5.0, follow: bool = False, stopped=lambda: False):
    with make_client(outbound, Deadline(seconds, stopped), follow_redirects=follow) as asking:
        return asking.get(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
def test_it_checks_the_address_whatever_it_is_called(host):
    with serving(Reply({})) as server:
        with pytest.raises(AddressRefused) as caught:
            get(f"http://{host}:{server.port}/", CLOSED)
        assert server.requests == []
    assert caught.value.kind == "configuration"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_it_calls_what_is_allowed(host):
    with serving(Reply({"a": 1})) as server:
        assert get(f"http://{host}:{server.port}/", LOOPBACK).json() == {"a": 1}


def test_it_checks_where_a_redirect_leads():
    there = Reply(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data/"})
    with serving(there) as server, pytest.raises(AddressRefused, match=r"169\.254\.169\.254"):
        get(server.url, LOOPBACK, follow=True)


def test_it_does_not_follow_unasked():
    with serving(Reply(status=302, headers={"Location": "/other"})) as server:
        assert get(server.url, LOOPBACK).status_code == 302
        assert len(server.requests) == 1


def test_no_variable_of_the_environment_sends_it_elsewhere(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving(Reply({})) as server:
        assert get(server.url, LOOPBACK).status_code == 200


def test_the_time_limit_holds_for_the_whole_of_a_slow_answer():
    began = time.monotonic()
    drops = Reply(pieces=(b"x",) * 400, delay=0.1)
    with serving(drops) as server, pytest.raises(DeadlineExceeded):
        get(server.url, LOOPBACK, seconds=0.5)
    assert 0.4 < time.monotonic() - began < 20


def test_it_stops_when_it_is_asked_to():
    began = time.monotonic()
    with serving(Reply({}, delay=1.5)) as server, pytest.raises(Stopped):
        get(server.url, LOOPBACK, seconds=60, stopped=lambda: time.monotonic() - began > 0.3)
    assert time.monotonic() - began < 20


def test_an_unreachable_address_is_a_connection_error():
    # A port that is held and not listened on: a free one could be another process's by now.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        for url in (f"http://127.0.0.1:{held.getsockname()[1]}/", "http://no-such-host.invalid/"):
            with pytest.raises(httpx.ConnectError):
                get(url, LOOPBACK)


@pytest.mark.parametrize(
    ("reply", "outbound", "reason"),
    [
        (Reply({}), LOOPBACK, ""),
        (Reply({}), CLOSED, "EVALHUB_HTTP_ALLOW"),
        (Reply({}, status=503), LOOPBACK, "HTTP 503"),
        (Reply({}, delay=1.0), LOOPBACK, "within 0.3 s"),
        (Reply(status=307, headers={"Location": "http://169.254.169.254/"}), LOOPBACK, "never called"),
    ],
    ids=["well", "refused", "ill", "slow", "redirected"],
)
def test_a_health_check_is_held_to_it(reply, outbound, reason):
    with serving(reply) as server:
        problem = ask_address(server.url, 0.3, outbound)
    assert reason in problem if reason else problem == ""
