"""The other two formats: AgentV's cases on a mock target, and tool-forge's cases against an endpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.figures import MANAGE, ROOT, Figure, Spent, median_of, run

CASES = 1000
LANES = 8
AGENT = ROOT / "scenarios" / "examples" / "agents" / "city_agent.py"
MOCK_WITH_TRACE = """targets:
  - name: agent
    provider: mock
    response: "4"
    trace:
      - {type: tool_call, name: calc, input: {a: 2}, timestamp: "2026-01-01T00:00:00Z"}
      - {type: tool_result, name: calc, output: 4, timestamp: "2026-01-01T00:00:01Z"}
"""


@contextmanager
def _folder(eval_file: str, content: str, targets: str) -> Iterator[tuple[Path, Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="evalhub-bench-") as folder:
        root = Path(folder)
        evals, target_file, data = root / eval_file, root / "targets.yaml", root / "data"
        evals.write_text(content)
        target_file.write_text(targets)
        run([*MANAGE, "migrate", "-v0"], data)
        yield data, evals, target_file


def _carry(data: Path, evals: Path, targets: Path, **env: str) -> Spent:
    command = [*MANAGE, "run_scenarios", str(evals), "--targets", str(targets), "--target", "agent"]
    return run([*command, "--concurrency", str(LANES), "--now"], data, **env)


def agentv() -> Iterator[Figure]:
    """1,000 cases with one trajectory evaluator; AgentV's own program takes 9.7 s for 1,000 mock cases."""
    case = """  - id: case-{n}
    expected_outcome: Says 4.
    input_messages: [{{role: user, content: "What is 2+2, for the {n}th time?"}}]
    expected_messages: [{{role: assistant, content: "4"}}]
    evaluators: [{{name: trajectory, type: tool_trajectory, mode: any_order, minimums: {{calc: 1}}}}]
"""
    text = "evalcases:\n" + "".join(case.format(n=n) for n in range(CASES))
    with _folder("sums.eval.yaml", text, MOCK_WITH_TRACE) as (data, evals, targets):
        spent = median_of(3, lambda: _carry(data, evals, targets))
    yield Figure("1,000 AgentV mock cases, whole process (AgentV itself: 9.7)", spent.wall, "s", 4.85)


def endpoint() -> Iterator[Figure]:
    """1,000 tool-forge cases against an agent on loopback, beside a loop that only posts."""
    expect = {"toolsCalled": ["get_weather"], "responseNonEmpty": True, "responseContains": ["Lima"]}
    cases = [
        {
            "id": f"case-{n}",
            "description": "",
            "input": {"message": f"How is the weather in Lima, {n}?"},
            "expect": expect,
        }
        for n in range(CASES)
    ]
    with _agent() as url:
        bare = _bare(url)
        targets = f"targets:\n  - {{name: agent, provider: http, url: '{url}'}}\n"
        with _folder("weather.golden.json", json.dumps({"cases": cases}), targets) as (
            data,
            evals,
            target_file,
        ):
            spent = median_of(3, lambda: _carry(data, evals, target_file))
    yield Figure("1,000 tool-forge cases against a loopback agent", spent.wall, "s", 9.0, bare)


@contextmanager
def _agent() -> Iterator[str]:
    with tempfile.TemporaryDirectory():
        port = 8979
        with subprocess.Popen([sys.executable, str(AGENT), str(port)]) as process:
            try:
                time.sleep(0.5)
                yield f"http://127.0.0.1:{port}/v1/chat"
            finally:
                process.terminate()


def _bare(url: str) -> float:
    """Return the seconds of a loop that posts the same questions one after another."""
    began = time.perf_counter()
    for n in range(CASES):
        body = json.dumps({"message": f"How is the weather in Lima, {n}?"}).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()
    return time.perf_counter() - began
