"""A whole evalhub of its own: data directory, database, broker and workers as real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from evalhub.broker import broker_directory, broker_program, write_broker_config
from tests.services.servers import new_database, redis_program, start_redis
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


class Stand:
    """Starts, kills and looks at the processes; every method is what somebody could do from outside."""

    def __init__(self, folder: Path, name: str, migrated: str = "", server: str = "") -> None:
        """Take an empty database, or a copy of the one at this address that nobody is connected to.

        `server` is the PostgreSQL to use; by default the one that the tests run on.
        """
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.database = _database(self.data, name, migrated, server or os.environ.get("DATABASE_URL", ""))
        self.socket = self._socket()
        self.env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "evalhub.settings",
            "EVALHUB_DATA": str(self.data),
            "EVALHUB_LEASE_SECONDS": "2",
            "EVALHUB_SANDBOX": "prefer",
            "EVALHUB_SECRET_KEY": "a-secret-of-the-tests-that-is-long-enough-for-everybody",
            "DATABASE_URL": self.database,
            "EVALHUB_BROKER_URL": f"redis+socket://{self.socket}?virtual_host=0" if self.on_postgres else "",
        }
        self.broker: subprocess.Popen[bytes] | None = None
        self._asked: Any = None

    @property
    def on_postgres(self) -> bool:
        return self.database.startswith("postgresql:")

    def _socket(self) -> Path:
        folder = broker_directory(self.data)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / "valkey.sock"

    def start_broker(self) -> None:
        program = redis_program() if self.on_postgres else broker_program() or redis_program()
        config = None if self.on_postgres else write_broker_config(self.data, self.env["EVALHUB_SECRET_KEY"])
        self.broker = start_redis(self.socket.parent, program, self.socket, config)
        self.processes.append(self.broker)

    def start_worker(
        self, *, threads: int = 4, beat: bool = True, **variables: str
    ) -> subprocess.Popen[bytes]:
        """Start a worker whose environment differs by these variables."""
        argv = [sys.executable, "-m", "celery", "--app", "evalhub", "worker", "--pool", "threads"]
        argv += ["--loglevel", "WARNING", "--hostname", f"w{len(self.processes)}@%h"]
        argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        if beat:
            argv += ["--beat", "--schedule", str(self.data / "beat-schedule")]
        with (self.folder / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env={**self.env, "EVALHUB_WORKER_THREADS": str(threads), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        self.processes.append(process)
        return process

    def manage(self, *words: str, code: int | None = 0, given: str = "") -> Any:
        """Run a command of evalhub with --json and return its document; None takes any exit code.

        `given` is its standard input.
        """
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.env,
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert code is None or done.returncode == code, done.stderr + done.stdout
        return json.loads(done.stdout) if "--json" in words else None

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the database, from outside."""
        return list(self._connection().execute(query).fetchall())

    def execute(self, statement: str) -> None:
        """Change the database, from outside."""
        self._connection().execute(statement)

    def _connection(self) -> Any:
        if self._asked is None:
            # One connection for all: tests ask twenty times a second, and the workers need the processor.
            self._asked = (
                psycopg.connect(self.database, autocommit=True)
                if self.on_postgres
                else sqlite3.connect(self.data / "evalhub.sqlite3", timeout=20, isolation_level=None)
            )
        return self._asked

    def forget_connection(self) -> None:
        """Close the connection that `rows` keeps, because its server is about to go."""
        if self._asked is not None:
            self._asked.close()
            self._asked = None

    def one(self, query: str) -> Any:
        return self.rows(query)[0][0]

    def until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait for something to become true. Raises `AssertionError` with the workers' log."""
        until(
            ready,
            seconds,
            lambda: f"The workers' log: {(self.folder / 'worker.log').read_text(errors='replace')[-4000:]}",
        )

    def stop(self) -> None:
        """End everything that was started here."""
        if self._asked is not None:
            self._asked.close()
        for process in reversed(self.processes):
            kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its group as a crash would."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _database(data: Path, name: str, migrated: str, server: str) -> str:
    if server.startswith("postgresql:"):
        return new_database(server, name, urlsplit(migrated).path.removeprefix("/"))
    file = data / "evalhub.sqlite3"
    if migrated:
        shutil.copy(migrated.removeprefix("sqlite:///"), file)
    return f"sqlite:///{file}"
