"""A worker's network in miniature, run in namespaces of its own: `python small_world.py '{"command": …}'`.

A second network namespace at the other end of a cable plays all the world: public, private and metadata addresses, a
server on each. Nothing here leaves the machine. It prints what the worker and what a sandboxed command could reach.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

PORT = 8000
PUBLIC = ("9.9.9.9", "2a00:9::9")
PRIVATE = (
    "10.1.2.3",
    "172.16.5.5",
    "192.168.9.9",
    "100.64.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.2.9",
    "fd12::1",
    "fd00:ec2::254",
    "64:ff9b::a01:203",
    "2002:a01:203::1",
)
WORKER = ("5.5.5.1", "2a00:5::1", "127.0.0.1", "127.0.0.9", "::1")
"""The worker's own addresses, two of them public."""
NAME, ANSWER = b"\x05model\x04test\x00", "9.9.9.9"


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve(address: str, port: int = PORT) -> None:
    """Answer each connection and each datagram with a word."""
    tcp = socket.create_server((address, port), family=family(address))
    udp = socket.socket(family(address), socket.SOCK_DGRAM)
    udp.bind((address, port))

    def answer_connections() -> None:
        while True:
            connection, _ = tcp.accept()
            connection.sendall(b"here")
            connection.close()

    def answer_datagrams() -> None:
        while True:
            _, sender = udp.recvfrom(512)
            udp.sendto(b"here", sender)

    for work in (answer_connections, answer_datagrams):
        threading.Thread(target=work, daemon=True).start()


def resolve() -> None:
    """Answer every question for an address with the same one."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.9", 53))

    def answer() -> None:
        while True:
            asked, sender = udp.recvfrom(512)
            end = asked.index(b"\0", 12) + 5
            counts = b"\0\1\0\1\0\0\0\0" if asked[end - 4 : end - 2] == b"\0\1" else b"\0\1\0\0\0\0\0\0"
            record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(ANSWER)
            udp.sendto(
                asked[:2] + b"\x81\x80" + counts + asked[12:end] + (record if counts[3] else b""), sender
            )

    threading.Thread(target=answer, daemon=True).start()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def be_the_world() -> None:
    """Serve every address of the world; started in its own network namespace."""
    sys.stdin.readline()
    ip("link", "set", "lo", "up")
    for address in ("5.5.5.2/24", "2a00:5::2/64", *PUBLIC, *PRIVATE):
        ip("address", "add", address, "dev", "cable", *(["nodad"] if ":" in address else []))
    ip("link", "set", "cable", "up")
    for address in (*PUBLIC, *PRIVATE):
        serve(address)
    print("ready", flush=True)
    time.sleep(120)


def connect_to_the_world() -> subprocess.Popen[str]:
    words = ["unshare", "--net", "--kill-child", sys.executable, __file__, "world"]
    world = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    ip("link", "set", "lo", "up")
    ip("link", "add", "wire", "type", "veth", "peer", "name", "cable", "netns", str(world.pid))
    for address in ("5.5.5.1/24", "2a00:5::1/64"):
        ip("address", "add", address, "dev", "wire", *(["nodad"] if ":" in address else []))
    ip("address", "add", "127.0.0.9/8", "dev", "lo")
    ip("link", "set", "wire", "up")
    assert world.stdin and world.stdout
    world.stdin.write("go\n")
    world.stdin.flush()
    assert world.stdout.readline() == "ready\n"
    ip("route", "add", "default", "via", "5.5.5.2")
    ip("-6", "route", "add", "default", "via", "2a00:5::2")
    return world


PROBE = """
import json, socket, sys
reached = []
for kind, address, port in json.loads(sys.argv[1]):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    found.settimeout(1.5)
    try:
        found.connect((address, port))
        if kind == "udp":
            found.send(b"?")
        if found.recv(9) == b"here":
            reached.append(f"{kind} {address}:{port}")
    except OSError:
        pass
try:
    reached.append("model.test is " + socket.gethostbyname("model.test"))
except OSError:
    pass
print(json.dumps(reached))
"""


def probes() -> str:
    every = [(kind, address, PORT) for kind in ("tcp", "udp") for address in (*PUBLIC, *PRIVATE, *WORKER)]
    inside = [("tcp", address, PORT) for address in ("198.18.77.2", "fd00::2")]
    return json.dumps([*every, *inside, ("tcp", "127.0.0.1", PORT + 1)])


def main(asked: dict[str, Any]) -> None:
    """Try every address from the worker and from a sandbox."""
    from runs.sandbox.egress import Egress, parse_allowed
    from runs.sandbox.process import run_process
    from runs.sandbox.profiles import AGENT
    from tests.runs.containments import containment

    with tempfile.TemporaryDirectory() as folder:
        resolver = Path(folder, "resolv.conf")
        resolver.write_text("nameserver 127.0.0.9\noptions timeout:1 attempts:1\n")
        subprocess.run(["mount", "--bind", str(resolver), "/etc/resolv.conf"], check=True)
        world = connect_to_the_world()
        for address in WORKER:
            serve(address)
        serve("127.0.0.1", PORT + 1)
        resolve()
        outside = subprocess.run(
            [sys.executable, "-IS", "-c", PROBE, probes()], capture_output=True, text=True, check=True
        )
        workspace, scratch = Path(folder, "workspace"), Path(folder, "scratch")
        workspace.mkdir()
        scratch.mkdir()
        contained = replace(
            containment(), egress=Egress(asked["egress"]), allowed=parse_allowed(asked["allow"])
        )
        sandbox = contained.around(workspace, scratch, profile=AGENT)
        command = asked["command"] or [sys.executable, "-IS", "-c", PROBE, probes()]
        result = run_process(command, cwd=workspace, env={}, timeout_seconds=90, sandbox=sandbox)
        world.kill()
    facts = {"worker": json.loads(outside.stdout), "stderr": result.stderr.decode(), "code": result.exit_code}
    print(json.dumps({**facts, "sandbox": result.stdout.decode()}))


if __name__ == "__main__":
    be_the_world() if sys.argv[1] == "world" else main(json.loads(sys.argv[1]))
