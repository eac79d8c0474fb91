"""What a command of a trial can do to the broker that it reaches: nothing."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from evalhub.broker import broker_directory, broker_password, embedded_broker_url, write_broker_config
from runs.engine.workspace.workspace import LocalWorkspace
from tests.runs.containments import containment
from tests.services.servers import redis_program, start_redis
from tests.worker.stand import kill_group

ATTACK = r"""
import socket, sys
for command in ("CONFIG GET *", "KEYS *", "PUBLISH /0.celery.pidbox {}", "SHUTDOWN NOSAVE"):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as broker:
        broker.sendall(command.encode() + b"\r\n")
        print(command.split()[0], broker.recv(200).decode().strip())
"""
SECRET = "a-secret-of-the-tests-that-is-long-enough-for-everybody"


@pytest.mark.services
def test_a_command_on_the_workers_network_gets_no_broker_data(tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = write_broker_config(tmp_path / "data", SECRET)
    broker = start_redis(tmp_path, redis_program(), tmp_path / "socket", config, port=port)
    try:
        workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
        workspace.mkdir()
        scratch.mkdir()
        (workspace / "attack.py").write_text(ATTACK)
        place = LocalWorkspace(workspace, scratch, containment())
        done = place.run(f"{sys.executable} attack.py {port}", timeout_seconds=20, network=True)
        answers = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        assert set(answers) == {"CONFIG", "KEYS", "PUBLISH", "SHUTDOWN"}, done.stderr
        assert all("NOAUTH" in answer for answer in answers.values()), answers
        assert broker.poll() is None
    finally:
        kill_group(broker)


def test_the_embedded_brokers_password_is_private(tmp_path: Path):
    config = write_broker_config(tmp_path, SECRET)
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.parent.stat().st_mode & 0o777 == 0o700
    assert broker_password(SECRET) in config.read_text()
    assert f":{broker_password(SECRET)}@{broker_directory(tmp_path)}" in embedded_broker_url(tmp_path, SECRET)
    assert broker_password(SECRET) != broker_password("another secret")
