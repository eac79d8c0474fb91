"""`up`: everything on one machine, kept running, and nothing left behind."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalhub.web.example_agent import free_port
from tests.waiting import until
from tests.worker.stand import ROOT

NOT_OURS = (
    "DATABASE_URL",
    "EVALHUB_BROKER_URL",
    "DJANGO_SETTINGS_MODULE",
    "EVALHUB_HOSTS",
    "EVALHUB_SANDBOX",
)


def environment(data: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name not in NOT_OURS},
        "EVALHUB_DATA": str(data),
        "EVALHUB_TEST_WORD": str(data),
    }


def processes(data: Path) -> dict[int, str]:
    """Return the processes that were started with this data directory, with their command lines."""
    word = f"EVALHUB_TEST_WORD={data}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and word in (folder / "environ").read_bytes().split(b"\0"):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                if line:
                    found[int(folder.name)] = line
        except OSError:
            continue
    return found


ALL_SERVICES = {" up ": 1, "gunicorn": 3, " worker ": 1, " beat ": 1}
"""How many processes each service has; the pages have one that starts two others. The broker hides its environment."""


def services(data: Path) -> dict[str, int]:
    """Return how many processes of each service run; what a worker starts to look at its machine is none of them."""
    lines = processes(data).values()
    return {word: sum(word in f" {line} " for line in lines) for word in ALL_SERVICES}


def up(data: Path, port: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "up", "--no-examples", "--port", str(port), *more],
        cwd=ROOT,
        env=environment(data),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )


def manage(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        text=True,
        timeout=30,
    )


class Running:
    """An evalhub that serves."""

    def __init__(self, data: Path, migrated: str) -> None:
        if migrated.startswith("sqlite:"):
            data.mkdir()
            shutil.copy(migrated.removeprefix("sqlite:///"), data / "evalhub.sqlite3")
        self.data, self.port = data, free_port()
        self.supervisor = up(data, self.port)

    def health(self) -> dict[str, Any] | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz", headers={"Host": "localhost"})
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == 200 else None
        except OSError:
            return None
        finally:
            connection.close()

    def worker(self) -> int | None:
        return self.service(" worker ")

    def beat(self) -> int | None:
        return self.service(" beat ")

    def service(self, word: str) -> int | None:
        return next((pid for pid, line in processes(self.data).items() if word in line), None)


@pytest.fixture
def running(tmp_path: Path, migrated: str) -> Iterator[Running]:
    started = Running(tmp_path / "data", migrated)
    try:
        until(lambda: (started.health() or {}).get("ok"), 60)
        until(started.worker)
        yield started
    finally:
        for pid in processes(started.data):
            os.kill(pid, signal.SIGKILL)
        started.supervisor.wait()
        if started.supervisor.stdout:
            started.supervisor.stdout.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_it_keeps_everything_running_and_stops_in_order(running: Running):
    health = running.health() or {}
    assert (health["ok"], health["database"], health["broker"]) == (True, "ok", "ok")

    # Threads of a web process share one pool of memory.
    web = [pid for pid, line in processes(running.data).items() if "gunicorn" in line]
    assert web
    assert all(b"MALLOC_ARENA_MAX=1" in Path(f"/proc/{pid}/environ").read_bytes() for pid in web)

    killed = running.worker()
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    until(lambda: running.worker() not in (None, killed))

    second = manage(running.data, "up", "--port", str(free_port()))
    assert second.returncode == 2
    assert "running in" in second.stderr
    assert "Stop it first, or give another directory in EVALHUB_DATA." in second.stderr
    assert "Traceback" not in second.stderr

    # Also after another start was refused, a link leads to where the pages are.
    link = manage(running.data, "signin_link")
    assert f"http://127.0.0.1:{running.port}/sign-in/link/" in link.stdout

    began = time.monotonic()
    running.supervisor.send_signal(signal.SIGINT)
    output, _ = running.supervisor.communicate(timeout=40)
    assert running.supervisor.returncode == 0
    assert time.monotonic() - began < 20
    assert "Serving on http://127.0.0.1:" in output
    assert output.rstrip().endswith("Stopping.")
    assert "worker ended with exit code -9; it starts again" in output
    assert until(lambda: not processes(running.data), 5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("service", ["worker", "beat"])
def test_a_killed_service_comes_back_and_leaves_nothing(running: Running, service: str):
    find = running.worker if service == "worker" else running.beat
    # The supervisor starts beat after the worker; what is counted before has to have both.
    until(lambda: services(running.data) == ALL_SERVICES, 60)
    killed = find()
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    until(lambda: find() not in (None, killed), 60)
    # A process that a dead service left would still be there beside those of its successor.
    until(lambda: services(running.data) == ALL_SERVICES, 60)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux'")
def test_nothing_is_left_when_the_supervisor_is_killed(running: Running):
    assert len(processes(running.data)) >= 4
    os.kill(running.supervisor.pid, signal.SIGKILL)
    running.supervisor.wait()
    until(lambda: not processes(running.data), 30)


@pytest.mark.slow
def test_a_program_reads_one_document(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--no-examples", "--once", "--json", "--port", str(free_port())],
        cwd=ROOT,
        env=environment(tmp_path / "data"),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"url": None, "sign_in": None, "examples": None})


@pytest.mark.slow
def test_it_starts_from_any_folder(tmp_path: Path):
    (tmp_path / "celery.py").write_text("raise SystemExit('another celery')")
    (tmp_path / "secret").write_text("a-secret-of-the-tests-that-is-long-enough-for-everybody")
    variables = {
        **environment(Path("data")),
        "EVALHUB_SECRET_KEY_FILE": "secret",
        "DATABASE_URL": "sqlite:///a.db",
    }
    done = subprocess.run(
        [sys.executable, ROOT / "manage.py", "up", "--no-examples", "--once", "--port", str(free_port())],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.db").exists() and (tmp_path / "data" / "logs").exists()


def refused(data: Path, port: int) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--no-examples", "--port", str(port)],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def test_a_used_port_is_reported(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        output = refused(tmp_path / "data", port)
    assert f"Port {port} cannot be used: Address already in use." in output
    assert f"make run PORT={port + 1}" in output


def test_an_invalid_port_is_reported(tmp_path: Path):
    assert "99999 is not a port: give a number from 1 to 65535." in refused(tmp_path / "data", 99_999)


def test_a_data_directory_that_cannot_be_created_is_reported(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    output = refused(tmp_path / "file" / "data", free_port())
    assert output.count("\n") == 0
    assert "cannot be made: Not a directory. Name another one in EVALHUB_DATA." in output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_data_directory_is_reported(tmp_path: Path):
    (tmp_path / "data").mkdir(mode=0o500)
    assert "is not writable. Change its owner, or name another one in EVALHUB_DATA." in refused(
        tmp_path / "data", free_port()
    )
