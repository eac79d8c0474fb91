"""Results of another program brought in over HTTP, a hundred a request, on SQLite."""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import MANAGE, Figure, run
from tests.bench.pages import PORT, served

BATCH, BATCHES, WARM_UP = 100, 50, 5
BOUNDARY = "a-boundary-that-no-result-holds"
_TOKEN = """
from evalhub.teams.access import local_owner
from evalhub.teams.models import ApiToken, Project
user = local_owner()
print(ApiToken.issue(Project.objects.first(), user, name="bench", role="author")[1])
"""


def ingest() -> Iterator[Figure]:
    """Post batches one after the other; every batch is a run with rollups, a comparison and search entries."""
    with tempfile.TemporaryDirectory(prefix="evalhub-bench-") as folder:
        data, env = Path(folder), {"EVALHUB_SECRET_KEY": "a-secret-of-the-benchmark-that-is-long-enough"}
        run([*MANAGE, "migrate", "-v0"], data, **env)
        token = run([*MANAGE, "shell", "--no-imports", "-c", _TOKEN], data, **env).output.strip()
        with served(data, env):
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            bodies = [_body(number) for number in range(WARM_UP + BATCHES)]
            for body in bodies[:WARM_UP]:
                _post(connection, token, body)
            began = time.perf_counter()
            for body in bodies[WARM_UP:]:
                _post(connection, token, body)
            spent = time.perf_counter() - began
    yield Figure("results over HTTP, batches of 100", BATCH * BATCHES / spent, "a second", 5000.0, more=True)


def _body(number: int) -> bytes:
    return (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="results-{number}.jsonl"\r\n'
        f"Content-Type: application/json\r\n\r\n{_results(number)}\r\n--{BOUNDARY}--\r\n"
    ).encode()


def _post(connection: http.client.HTTPConnection, token: str, body: bytes) -> None:
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
    }
    connection.request("POST", "/api/v1/results", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 201:
        raise RuntimeError(f"/api/v1/results answered {answer.status}: {text[:200]!r}")


def _results(number: int) -> str:
    """Return AgentV's JSON lines of 20 cases with 5 results each."""
    return "\n".join(
        json.dumps(
            {
                "timestamp": f"2026-11-{1 + number % 28:02}T10:00:00Z",
                "eval_id": f"case-{index % 20}",
                "dataset": "taskmgr",
                "target": "agent",
                "score": 0.75 if (index + number) % 4 else 0.25,
                "hits": ["The task was added."],
                "misses": ["The tag is missing."],
                "candidate_answer": f"Added task {index} of batch {number} with its due date.",
            }
        )
        for index in range(BATCH)
    )
