"""A real worker and a real web server with two data directories, and with one."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalhub.web.example_agent import free_port
from tests.worker.stand import ROOT, Stand, kill_group

pytestmark = [pytest.mark.slow, pytest.mark.one_database]
TOKEN = "a-token-of-the-test"
REPORTED = "SELECT name FROM runs_worker WHERE store <> ''"


@pytest.fixture
def worker(stand: Stand) -> str:
    """Return the name of a worker that has reported its store."""
    stand.start_worker(threads=1, beat=False)
    stand.until(lambda: bool(stand.rows(REPORTED)), 40)
    return str(stand.one(REPORTED))


def elsewhere(worker: str) -> str:
    return f"Worker {worker} stores files elsewhere: set EVALHUB_STORE or share the data directory."


def with_data(stand: Stand, data: Path) -> dict[str, str]:
    return {**stand.env, "EVALHUB_DATA": str(data), "EVALHUB_METRICS_TOKEN": TOKEN}


def checked(env: dict[str, str], words: str) -> str:
    command = [sys.executable, "manage.py", *words.split()]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@contextmanager
def web(env: dict[str, str], log: Path) -> Iterator[int]:
    """Serve the pages as docs/operations.md says; give the port."""
    port = free_port()
    argv = [sys.executable, "-m", "gunicorn", "evalhub.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    argv += ["--worker-class", "evalhub.web.server.ThreadWorker", "--no-control-socket", "--preload"]
    with log.open("wb") as output:
        server = subprocess.Popen(argv, cwd=ROOT, env=env, stderr=output, process_group=0)
        try:
            yield port
        finally:
            kill_group(server)


def health(port: int) -> dict[str, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(
            "GET", "/healthz", headers={"Host": "localhost", "Authorization": f"Bearer {TOKEN}"}
        )
        found: dict[str, Any] = json.loads(connection.getresponse().read())
    return found


def test_a_worker_with_other_data_is_named(stand, worker, tmp_path):
    env, log = with_data(stand, tmp_path / "web"), tmp_path / "web.log"
    for words in ("check --database default", "migrate"):
        output = checked(env, words)
        assert elsewhere(worker) in output
        assert "evalhub.W004" in output
    with web(env, log) as port:
        stand.until(lambda: elsewhere(worker) in log.read_text(), 40)
        assert health(port)["store"] == elsewhere(worker)


def test_a_worker_with_the_same_data_is_accepted(stand, worker, tmp_path):
    env, log = with_data(stand, stand.data), tmp_path / "web.log"
    output = checked(env, "check --database default")
    assert "System check identified" in output
    assert "evalhub.W004" not in output
    with web(env, log) as port:
        stand.until(lambda: "Booting worker" in log.read_text(), 40)
        assert health(port)["store"] == "ok"
