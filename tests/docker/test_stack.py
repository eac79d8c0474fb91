"""The very commands of compose.yaml as processes, where no engine runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from evalhub.web.management.commands.up import LOOPBACK
from tests.docker.stack import Stack
from tests.requirements import missing
from tests.services.servers import NotHere, postgres, redis

SCENARIO = """\
name: trivial
description: One gate.
task: {prompt: Do nothing.}
target: {binary: nothing}
evaluation: {gates: [{type: no_transcript_errors}]}
"""
pytestmark = [pytest.mark.slow, pytest.mark.worker, pytest.mark.own_servers, pytest.mark.one_database]
TARGETS = "targets: [{name: agent, provider: mock, response: done}]\n"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with ExitStack() as servers:
        try:
            found = Stack(
                tmp_path_factory.mktemp("stack"),
                servers.enter_context(postgres()),
                servers.enter_context(redis()),
            )
        except NotHere as error:
            missing("postgres", str(error))
        servers.callback(found.stop)
        found.manage("collectstatic", "--noinput", "-v0")
        found.start("migrate")
        assert found.processes["migrate"].wait(120) == 0, (found.folder / "migrate.log").read_text()
        for name in ("web", "worker", "beat"):
            found.start(name)
        yield found


def outcome(stack: Stack, run: int) -> str:
    with psycopg.connect(stack.database) as connection:
        row = connection.execute("SELECT outcome FROM runs_run WHERE id = %s", [run]).fetchone()
    return str(row[0]) if row else ""


def asked(stack: Stack, **env: str) -> int:
    """Ask for a mock run through the workers; return its number."""
    (stack.folder / "trivial.yaml").write_text(SCENARIO)
    (stack.folder / "targets.yaml").write_text(TARGETS)
    words = [
        str(stack.folder / "trivial.yaml"),
        "--targets",
        str(stack.folder / "targets.yaml"),
        "--target",
        "agent",
    ]
    (run,) = json.loads(stack.manage("run_scenarios", *words, "--json", **env))["runs"]
    return int(run if isinstance(run, int) else run["run"]["id"])


def test_web_answers_and_its_health_check_agrees(stack):
    stack.until(lambda: stack.healthy("web"), 60, "web")
    status, text = stack.get("/healthz")
    assert status == 200
    assert json.loads(text)["database"] == "ok"


def test_web_takes_its_secrets_from_files(stack):
    stack.until(lambda: stack.healthy("web"), 60, "web")
    assert stack.get("/metrics")[0] == 403
    assert stack.get("/metrics", Authorization="Bearer token")[0] == 200


@pytest.mark.starts_first
def test_the_worker_carries_a_run(stack):
    stack.until(lambda: stack.healthy("worker"), 60, "worker")
    run = asked(stack)
    stack.until(lambda: outcome(stack, run) == "pass", 60, "worker")


def test_beat_wakes_a_run_whose_message_was_lost(stack):
    stack.until(lambda: stack.healthy("beat"), 60, "beat")
    run = asked(stack, EVALHUB_BROKER_URL_FILE="", EVALHUB_BROKER_URL=f"redis://{LOOPBACK}:1/0")
    stack.until(lambda: outcome(stack, run) == "pass", 60, "beat")
