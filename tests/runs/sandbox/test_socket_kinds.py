"""A sandboxed command opens no sockets that its network namespace doesn't contain."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runs.sandbox import filtered_network
from runs.sandbox.egress import Egress
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT, COMMAND, Profile
from runs.sandbox.sandbox import Level
from tests.requirements import missing
from tests.runs.containments import containment

ATTEMPTS = """
import ctypes, json, os, socket

VSOCK, ALG, IO_URING_SETUP = 40, 38, 425
libc = ctypes.CDLL(None, use_errno=True)

def io_uring():
    if libc.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def tcp(family, address):
    with socket.create_server((address, 0), family=family) as server:
        socket.create_connection(server.getsockname()[:2]).close()

attempts = {
    "vsock": lambda: socket.socket(VSOCK),
    # The kernel reads the lower half of the argument only.
    "vsock in a wide number": lambda: os.close(wide(VSOCK | 7 << 32)),
    "alg": lambda: socket.socket(ALG, socket.SOCK_SEQPACKET),
    "io_uring": io_uring,
    "tcp": lambda: tcp(socket.AF_INET, "127.0.0.1"),
    "udp": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "unix": lambda: socket.socket(socket.AF_UNIX),
    "pair": socket.socketpair,
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
}

def wide(family):
    call = {"x86_64": 41}.get(os.uname().machine, 198)
    made = libc.syscall(call, ctypes.c_long(family), socket.SOCK_STREAM, 0)
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made

refused = {}
for name, attempt in attempts.items():
    try:
        attempt()
    except OSError as error:
        refused[name] = error.strerror
print(json.dumps(refused))
"""
OUTSIDE = {"vsock", "vsock in a wide number", "alg", "io_uring"}


@pytest.mark.parametrize(
    ("profile", "egress"),
    [(AGENT, Egress.INTERNET), (AGENT, Egress.NONE), (COMMAND, Egress.FULL)],
    ids=["an agent on the internet", "an agent without a network", "a gate"],
)
def test_sockets_outside_of_the_namespace_are_refused(
    tmp_path: Path, profile: Profile, egress: Egress
) -> None:
    refused = refused_to(tmp_path, profile, egress)
    assert refused == dict.fromkeys(OUTSIDE, "Permission denied")


def test_full_is_the_workers_network(tmp_path: Path) -> None:
    assert "Permission denied" not in refused_to(tmp_path, AGENT, Egress.FULL).values()


def refused_to(tmp_path: Path, profile: Profile, egress: Egress) -> dict[str, str]:
    """Return the kinds of sockets that a sandboxed command can't open, and why."""
    contained = replace(containment(Level.BWRAP), egress=egress)
    if egress is Egress.INTERNET and (problem := filtered_network.filtering_problem()):
        missing("sandbox", f"Networks cannot be filtered here: {problem}.")
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    sandbox = contained.around(workspace, scratch, profile=profile)
    command = [sys.executable, "-IS", "-c", ATTEMPTS]
    ended = run_process(command, cwd=workspace, env={}, timeout_seconds=30, sandbox=sandbox)
    assert ended.exit_code == 0, ended.stderr
    refused: dict[str, str] = json.loads(ended.stdout)
    return refused
