"""A warm worker: how soon an agent starts after its trial is claimed, and what the process weighs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.bench.figures import MANAGE, ROOT, Figure, run, suite

MEMORY_MB = 150
TRIALS = 40


@contextmanager
def evalhub_up(data: Path) -> Iterator[int]:
    """Start an embedded evalhub without examples; give the worker's process id."""
    env = {**os.environ, "EVALHUB_DATA": str(data)}
    command = [*MANAGE, "up", "--no-examples", "--port", "8977"]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as up:
        try:
            for line in up.stdout or ():
                if "Serving on" in line:
                    break
            yield _child(up.pid, "\0worker\0")
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(30)


def _child(parent: int, word: str) -> int:
    """Return the child process of `parent` whose command line has the word."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _parent(entry) == parent and word in (entry / "cmdline").read_text():
                return int(entry.name)
        time.sleep(0.2)
    raise TimeoutError(f"no {word} process appeared within 20 s")


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def resident_mb(pid: int) -> float:
    """Return the resident megabytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


STAMP = (
    "targets:\n  - name: agent\n    provider: cli\n"
    f"    command_template: \"{sys.executable} -IS -c 'import time; print(time.time())'\"\n"
)
_TIMES = """
from datetime import datetime
from runs.models import Trial
for trial in Trial.objects.order_by("pk"):
    print(float(trial.answer) - trial.started.timestamp())
"""


def claim_to_start() -> Iterator[Figure]:
    """Milliseconds from a claim to the agent's first instruction, in a warm worker, without a sandbox."""
    os.environ["EVALHUB_SANDBOX"] = "off"
    try:
        with suite(STAMP) as (data, scenario, targets), evalhub_up(data):
            command = [
                *MANAGE,
                "run_scenarios",
                str(scenario),
                "--targets",
                str(targets),
                "--target",
                "agent",
            ]
            run([*command, "--trials", str(TRIALS), "--wait"], data)
            printed = run([*MANAGE, "shell", "--no-imports", "-c", _TIMES], data).output.split()
    finally:
        del os.environ["EVALHUB_SANDBOX"]
    delays = sorted(float(each) for each in printed)[: TRIALS - 1]
    bare = _bare_start()
    yield Figure(
        "from claim to the agent's start in a warm worker", 1000 * median(delays), "ms", 50.0, 1000 * bare
    )


def _bare_start() -> float:
    found = []
    for _ in range(20):
        began = time.time()
        code = "import time; print(time.time())"
        done = subprocess.run([sys.executable, "-IS", "-c", code], capture_output=True, text=True, check=True)
        found.append(float(done.stdout) - began)
    return median(found)


MOCK = "targets:\n  - {name: agent, provider: mock, response: done}\n"


def memory() -> Iterator[Figure]:
    """Resident megabytes of a worker after its first trials, before it calls a model."""
    with suite(MOCK) as (data, scenario, targets), evalhub_up(data) as pid:
        command = [*MANAGE, "run_scenarios", str(scenario), "--targets", str(targets), "--target", "agent"]
        run([*command, "--trials", "200", "--concurrency", "8", "--wait"], data)
        resident = resident_mb(pid)
    yield Figure("a worker process, resident", resident, "MB", MEMORY_MB)
