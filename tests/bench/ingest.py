"""Results of another program brought in over HTTP, on SQLite, by one client."""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import MANAGE, Figure, run
from tests.bench.pages import PORT, served

LARGE, SMALL, CASES, WARM_UP = 1000, 100, 20, 5
BOUNDARY = "a-boundary-that-no-result-holds"
_TOKEN = """
from evalhub.teams.access import local_owner
from evalhub.teams.models import ApiToken, Project
user = local_owner()
print(ApiToken.issue(Project.objects.first(), user, name="bench", role="author")[1])
"""


def ingest() -> Iterator[Figure]:
    """Post files one after the other; every file is a run with rollups, a comparison and search entries."""
    with tempfile.TemporaryDirectory(prefix="evalhub-bench-") as folder:
        data, env = Path(folder), {"EVALHUB_SECRET_KEY": "a-secret-of-the-benchmark-that-is-long-enough"}
        run([*MANAGE, "migrate", "-v0"], data, **env)
        token = run([*MANAGE, "shell", "--no-imports", "-c", _TOKEN], data, **env).output.strip()
        with served(data, env):
            large = _files_a_second(token, LARGE, 20)
            small = _files_a_second(token, SMALL, 50)
    yield Figure("results over HTTP, files of 1,000", LARGE * large, "a second", 5000.0, more=True)
    yield Figure("results over HTTP, files of 100, runs", small, "a second", 30.0, more=True)


def _files_a_second(token: str, results: int, files: int) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    bodies = [_body(number, results) for number in range(WARM_UP + files)]
    for body in bodies[:WARM_UP]:
        _post(connection, token, body)
    began = time.perf_counter()
    for body in bodies[WARM_UP:]:
        _post(connection, token, body)
    return files / (time.perf_counter() - began)


def _body(number: int, results: int) -> bytes:
    return (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="results-{number}.jsonl"\r\n'
        f"Content-Type: application/json\r\n\r\n{_results(number, results)}\r\n--{BOUNDARY}--\r\n"
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


def _results(number: int, results: int) -> str:
    """Return AgentV's JSON lines of 20 cases with equally many results."""
    return "\n".join(
        json.dumps(
            {
                "timestamp": f"2026-11-{1 + number % 28:02}T10:00:00Z",
                "eval_id": f"case-{index % CASES}",
                "dataset": "taskmgr",
                "target": "agent",
                "score": 0.75 if (index + number) % 4 else 0.25,
                "hits": ["The task was added."],
                "misses": ["The tag is missing."],
                "candidate_answer": f"Added task {index} of batch {number} with its due date.",
            }
        )
        for index in range(results)
    )
