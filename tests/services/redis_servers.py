"""Redis servers on loopback, with TLS or with a Sentinel."""

from __future__ import annotations

import signal
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from evalhub.web.example_agent import free_port
from tests.services.certificates import Authority
from tests.services.servers import redis_program
from tests.waiting import until

HOST = "127.0.0.1"
PASSWORD = "the-brokers-word"
MASTER = "evalhub-broker"


@dataclass
class RedisServers:
    """Starts servers in one folder; with an authority all of them speak TLS alone and ask for client certificates."""

    folder: Path
    authority: Authority | None = None
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, *lines: str, sentinel: bool = False) -> int:
        """Start a server with these lines of configuration; return its port once it listens. Raises `NotHere`."""
        port = free_port()
        folder = self.folder / str(port)
        folder.mkdir(parents=True)
        config = folder / "redis.conf"
        config.write_text("\n".join([*self._listening(port), f"dir {folder}", *lines, ""]))
        argv = [redis_program(), str(config), *(["--sentinel"] if sentinel else [])]
        with (folder / "log").open("wb") as log:
            self.processes[port] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until(lambda: _listens(port), 20, lambda: (folder / "log").read_text(errors="replace")[-2000:])
        return port

    def _listening(self, port: int) -> list[str]:
        if self.authority is None:
            return [f"bind {HOST}", f"port {port}"]
        own = self.authority.issue(f"server-{port}", HOST)
        return [
            f"bind {HOST}",
            "port 0",
            f"tls-port {port}",
            f"tls-cert-file {own.certificate}",
            f"tls-key-file {own.key}",
            f"tls-ca-cert-file {self.authority.path}",
        ]

    def start_broker(self, *lines: str) -> int:
        """Start a server with the broker's password."""
        return self.start(f'requirepass "{PASSWORD}"', 'save ""', *lines)

    def start_sentinel(self, master: int) -> int:
        """Start a Sentinel that watches the master at this port and decides alone."""
        return self.start(
            f"sentinel monitor {MASTER} {HOST} {master} 1",
            f'sentinel auth-pass {MASTER} "{PASSWORD}"',
            sentinel=True,
        )

    def kill(self, port: int) -> None:
        """End a server as a crash would."""
        process = self.processes.pop(port)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End every server."""
        for port in [*self.processes]:
            self.kill(port)

    def settings(self, url: str) -> dict[str, str]:
        """Return evalhub's variables for an address of these servers."""
        found = {"EVALHUB_BROKER_URL": url}
        if url.startswith("sentinel"):
            found["EVALHUB_BROKER_MASTER"] = MASTER
        if self.authority is not None:
            own = self.authority.issue("evalhub", HOST)
            found |= {
                "EVALHUB_BROKER_CA": str(self.authority.path),
                "EVALHUB_BROKER_CERTIFICATE": str(own.certificate),
                "EVALHUB_BROKER_KEY": str(own.key),
            }
        return found


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
