"""The profile `three-workers` of compose.yaml as processes: each with its disk, and one store."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest
from moto.server import ThreadedMotoServer

from tests.docker.stack import Stack, env_file
from tests.requirements import missing
from tests.services.servers import NotHere, postgres, redis

WORKERS = ("worker", "worker-2", "worker-3")
SCENARIO = (
    "name: one\ndescription: Takes a while.\ntask: {prompt: sleep 3; echo done}\nevaluation: {gates: []}\n"
)
TARGETS = "targets: [{name: shell, provider: cli, command_template: 'sh -c {PROMPT}'}]\n"
pytestmark = [pytest.mark.fault, pytest.mark.own_servers, pytest.mark.one_database]


@pytest.fixture
def store() -> Iterator[str]:
    """Give the address of an S3-compatible store."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def stack(tmp_path: Path, store: str) -> Iterator[Stack]:
    profile = env_file("three-workers.env")
    profile["EVALHUB_STORE"] = profile["EVALHUB_STORE"].replace("http://store:9000", store)
    with ExitStack() as servers:
        try:
            database, broker = servers.enter_context(postgres()), servers.enter_context(redis())
        except NotHere as error:
            missing("postgres", str(error))
        found = Stack(tmp_path, database, broker, **profile)
        servers.callback(found.stop)
        found.manage("collectstatic", "--noinput", "-v0")
        for name in ("bucket", "migrate"):
            found.start(name)
            assert found.processes[name].wait(120) == 0, (tmp_path / f"{name}.log").read_text()
        for name in ("web", *WORKERS, "beat"):
            found.start(name)
        yield found


def row(stack: Stack, query: str) -> Any:
    with psycopg.connect(stack.database) as connection:
        return connection.execute(query).fetchone()


@pytest.mark.starts_first
def test_the_profile_runs_trials_and_shares_no_disk(stack: Stack, store: str, tmp_path: Path):
    stack.until(
        lambda: row(stack, "SELECT count(*) FROM runs_worker WHERE store <> ''") == (3,), 90, "worker"
    )
    (tmp_path / "one.yaml").write_text(SCENARIO)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    words = [str(tmp_path / "one.yaml"), "--targets", str(tmp_path / "targets.yaml"), "--target", "shell"]
    stack.manage("run_scenarios", *words, "--trials", "24", "--concurrency", "24")
    stack.until(lambda: row(stack, "SELECT state FROM runs_run") == ("finished",), 90, "worker")
    errors = row(stack, "SELECT array_agg(error) FROM runs_trial WHERE error <> ''")
    assert row(stack, "SELECT passed, failed, errors, open FROM runs_run") == (24, 0, 0, 0), errors
    assert row(stack, "SELECT count(DISTINCT worker) FROM runs_trial") == (3,)
    assert len({stack.disk(name) for name in ("web", *WORKERS, "beat")}) == 5
    assert not any((stack.disk(name) / "artifacts").exists() for name in ("web", *WORKERS))
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    kept = boto3.client("s3", endpoint_url=store, **keys).list_objects_v2(Bucket="evalhub")["KeyCount"]
    assert kept > 1
    status, text = stack.get("/healthz", Authorization="Bearer token")
    assert (status, json.loads(text)["store"]) == (http.client.OK, "ok")
