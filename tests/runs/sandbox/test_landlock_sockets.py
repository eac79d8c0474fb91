"""Gates have no network where Landlock is the only sandbox either."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from runs.sandbox.process import run_process
from runs.sandbox.sandbox import Level
from tests.runs.containments import containment

ATTACKS = """
import ctypes, json, os, socket, sys

unix, port, datagrams = json.loads(sys.argv[1])
MPTCP, FAST_OPEN, VSOCK, IO_URING_SETUP = 262, 0x20000000, 40, 425

def new(kind=socket.SOCK_STREAM, family=socket.AF_INET, protocol=0):
    return socket.socket(family, kind, protocol)

def io_uring():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "io_uring")

attacks = {
    "unix": lambda: new(family=socket.AF_UNIX).connect(unix),
    "tcp": lambda: new().connect(("127.0.0.1", port)),
    "multipath": lambda: new(protocol=MPTCP).connect(("127.0.0.1", port)),
    "fast open": lambda: new().sendto(b"hi", FAST_OPEN, ("127.0.0.1", port)),
    "udp": lambda: new(socket.SOCK_DGRAM).sendto(b"hi", ("127.0.0.1", datagrams)),
    "vsock": lambda: new(family=VSOCK),
    "netlink": lambda: new(socket.SOCK_RAW, socket.AF_NETLINK),
    "io_uring": io_uring,
}
refused = {}
for name, attack in attacks.items():
    try:
        attack()
        refused[name] = False
    except OSError as error:
        refused[name] = True
print(json.dumps(refused))
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "workspace", tmp_path / "scratch"
    for folder in made:
        folder.mkdir()
    return made


def run(folders: tuple[Path, Path], code: str, *words: str, network: bool = False) -> str:
    sandbox = containment(Level.LANDLOCK).around(*folders, network=network)
    command = [sys.executable, "-c", code, *words]
    ended = run_process(command, cwd=folders[0], env={}, timeout_seconds=30, sandbox=sandbox)
    assert ended.exit_code == 0, ended.stderr
    return ended.stdout.decode()


def attack(folders: tuple[Path, Path], tmp_path: Path, *, network: bool) -> dict[str, bool]:
    """Return which ways out were refused; a service listens at the end of each."""
    path = str(tmp_path / "service")
    with (
        socket.socket(socket.AF_UNIX) as unix,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        unix.bind(path)
        unix.listen()
        datagrams.bind(("127.0.0.1", 0))
        asked = json.dumps([path, server.getsockname()[1], datagrams.getsockname()[1]])
        found: dict[str, bool] = json.loads(run(folders, ATTACKS, asked, network=network))
    return found


def test_no_socket_leads_out_of_a_gate(folders, tmp_path):
    refused = attack(folders, tmp_path, network=False)
    assert [name for name, is_refused in refused.items() if not is_refused] == []


def test_the_services_answer_a_command_with_a_network(folders, tmp_path):
    refused = attack(folders, tmp_path, network=True)
    assert not any(refused[name] for name in ("unix", "tcp", "udp"))


def test_pairs_of_sockets_still_work(folders):
    code = "import socket; a, b = socket.socketpair(); a.send(b'hi'); print(b.recv(2).decode())"
    assert run(folders, code) == "hi\n"


def test_what_a_gate_starts_is_refused_too(folders):
    code = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', 'import socket; socket.socket()']).returncode == 0)"
    run(folders, code)
