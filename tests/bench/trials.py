"""Trials: the cost of evalhub around an agent that costs nothing, or fifty milliseconds."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from runs.containment.profiles import AGENT
from runs.containment.sandbox import Containment, Policy, look_at_machine
from runs.containment.starting import Bubblewrap
from tests.bench.figures import MANAGE, Figure, Spent, median_of, run, suite

MANY = 1000
FEW = 100
MOCK = "targets:\n  - {name: agent, provider: mock, response: done}\n"
# It says something, for a gate on a transcript fails where there is none.
SLEEPS = "echo slept; exec sleep 0.05"
SLEEPER = f'targets:\n  - {{name: agent, provider: cli, command_template: "{SLEEPS}"}}\n'
LANES = 8


def _trials(data: Path, scenario: Path, targets: Path, number: int, **env: str) -> Spent:
    command = [*MANAGE, "run_scenarios", str(scenario), "--targets", str(targets), "--target", "agent"]
    return run([*command, "--trials", str(number), "--concurrency", str(LANES), "--now"], data, **env)


def mock() -> Iterator[Figure]:
    """1,000 trials of a mock target, every result stored."""
    with suite(MOCK) as (data, scenario, targets):
        few = median_of(3, lambda: _trials(data, scenario, targets, FEW))
        many = median_of(3, lambda: _trials(data, scenario, targets, MANY))
    bare = _bare_mock(MANY)
    yield Figure("1,000 mock trials, whole process", many.wall, "s", 3.0, bare)
    yield Figure(
        "a further mock trial, CPU", 1000 * (many.cpu - few.cpu) / (MANY - FEW), "ms", 1.5, 1000 * bare / MANY
    )


def _bare_mock(number: int) -> float:
    """Return the seconds of a loop that checks a text and stores a row, with nothing around it."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        db = sqlite3.connect(Path(folder) / "bare.sqlite3", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("CREATE TABLE trial (id INTEGER PRIMARY KEY, passed INTEGER, answer TEXT)")
        for _ in range(number):
            answer = "done"
            db.execute("INSERT INTO trial (passed, answer) VALUES (?, ?)", ("one" in answer, answer))
        return time.perf_counter() - began


def processes() -> Iterator[Figure]:
    """1,000 trials of a 50 ms process at concurrency 8, without a sandbox and in one."""
    ideal = MANY * 0.05 / LANES
    for sandbox, ratio, whole in (("off", 1.10, 8.0), ("prefer", 1.25, 9.0)):
        with suite(SLEEPER) as (data, scenario, targets):
            # By turns: a slow minute of the machine meets both.
            pairs = [
                [_trials(data, scenario, targets, n, EVALHUB_SANDBOX=sandbox).wall for n in (FEW, MANY)]
                for _ in range(3)
            ]
        bare = _bare_processes(MANY, Policy(sandbox))
        few, many = (median(walls) for walls in zip(*pairs, strict=True))
        warm = (many - few) / ((MANY - FEW) * 0.05 / LANES)
        name = f"1,000 processes of 50 ms, sandbox {sandbox}"
        yield Figure(f"{name}: warm, times the ideal", warm, "×", ratio, bare / ideal)
        yield Figure(f"{name}: whole process", many, "s", whole, bare)


def _bare_processes(number: int, policy: Policy) -> float:
    """Return the seconds of a thread pool that starts the same processes, in the same sandbox, and does nothing else."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(LANES) as pool:
        workspace, scratch = Path(folder) / "workspace", Path(folder) / "scratch"
        workspace.mkdir()
        scratch.mkdir()
        contained = Containment(
            policy, look_at_machine(), os.environ["PATH"], system_files=Path(folder) / "system"
        )
        sandbox = contained.around(workspace, scratch, profile=AGENT)
        spawn = sandbox.wrap(("/bin/sh", "-c", SLEEPS), cwd=workspace, env={})
        around = spawn.through
        before = (around.program, *around.options, "--") if isinstance(around, Bubblewrap) else ()

        def carry(_: int) -> None:
            subprocess.run(
                (*before, *spawn.argv), cwd=spawn.cwd, env=spawn.env, capture_output=True, check=True
            )

        began = time.perf_counter()
        list(pool.map(carry, range(number)))
        return time.perf_counter() - began


def one() -> Iterator[Figure]:
    """One trial from the command line."""
    with suite(MOCK) as (data, scenario, targets):
        found = median_of(5, lambda: _trials(data, scenario, targets, 1))
    bare = median_of(
        5, lambda: run([MANAGE[0], "-c", "import django; django.setup"], Path(tempfile.gettempdir()))
    )
    yield Figure("one trial from the command line, median of 5", found.wall, "s", 1.2, bare.wall)
