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

from runs.sandbox.profiles import AGENT
from runs.sandbox.sandbox import Containment, Policy, detect_machine
from runs.sandbox.starting import Bubblewrap
from tests.bench.figures import MANAGE, Figure, Spent, median_of, run, suite

MANY = 1000
FEW = 100
MOCK = "targets:\n  - {name: agent, provider: mock, response: done}\n"
# It prints something, because a gate on a transcript fails without one.
SLEEPS = "echo slept; exec sleep 0.05"
SLEEPER = f'targets:\n  - {{name: agent, provider: cli, command_template: "{SLEEPS}"}}\n'
LANES = 8


def _trials(
    data: Path, scenario: Path, targets: Path, number: int, *, lanes: int = LANES, **env: str
) -> Spent:
    command = [*MANAGE, "run_scenarios", str(scenario), "--targets", str(targets), "--target", "agent"]
    return run([*command, "--trials", str(number), "--concurrency", str(lanes), "--now"], data, **env)


def mock() -> Iterator[Figure]:
    """1,000 trials of a mock target, every result stored."""
    with suite(MOCK) as (data, scenario, targets):
        few = median_of(3, lambda: _trials(data, scenario, targets, FEW))
        many = median_of(3, lambda: _trials(data, scenario, targets, MANY))
    bare = _bare_mock(MANY)
    yield Figure("1,000 mock trials, whole process", many.wall, "s", 2.5, bare)
    yield Figure(
        "a further mock trial, CPU", 1000 * (many.cpu - few.cpu) / (MANY - FEW), "ms", 1.5, 1000 * bare / MANY
    )
    yield from _by_lanes()


def _by_lanes() -> Iterator[Figure]:
    """The same trials in 8 lanes and in one: one case 1,000 times, and 1,000 cases once."""
    with suite(MOCK) as (data, scenario, targets):
        yield _lanes_figure("1,000 mock trials", data, scenario, targets, MANY)
        cases = data.parent / "cases"
        cases.mkdir()
        for n in range(MANY):
            (cases / f"{n}.yaml").write_text(scenario.read_text().replace("trivial", f"case-{n}"))
        yield _lanes_figure("1,000 mock cases", data, cases, targets, 1)


def _lanes_figure(name: str, data: Path, source: Path, targets: Path, trials: int) -> Figure:
    # In turns, so that a slow minute of the machine affects both.
    walls = [
        [_trials(data, source, targets, trials, lanes=lanes).wall for lanes in (LANES, 1)] for _ in range(5)
    ]
    many, one = (median(each) for each in zip(*walls, strict=True))
    return Figure(f"{name}, concurrency {LANES} over 1", many / one, "×", 1.0)


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
    """1,000 trials of a 50 ms process at concurrency 8, without a sandbox and in one, over the same bare commands."""
    for sandbox in ("off", "prefer"):
        with suite(SLEEPER) as (data, scenario, targets):
            # In turns, so that a slow minute of the machine affects both.
            rounds = [
                (
                    *(_trials(data, scenario, targets, n, EVALHUB_SANDBOX=sandbox).wall for n in (FEW, MANY)),
                    _bare_processes(MANY - FEW, Policy(sandbox)),
                )
                for _ in range(3)
            ]
        few, many, bare = (median(walls) for walls in zip(*rounds, strict=True))
        name = f"1,000 processes of 50 ms, sandbox {sandbox}"
        yield Figure(f"{name}: a further 900, times bare", (many - few) / bare, "×", 1.15)


def _bare_processes(number: int, policy: Policy) -> float:
    """Return the seconds of a thread pool that starts the same processes, in the same sandbox, and does nothing else."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(LANES) as pool:
        workspace, scratch = Path(folder) / "workspace", Path(folder) / "scratch"
        workspace.mkdir()
        scratch.mkdir()
        contained = Containment(
            policy, detect_machine(), os.environ["PATH"], system_files=Path(folder) / "system"
        )
        sandbox = contained.around(workspace, scratch, profile=AGENT)
        spawn = sandbox.wrap(("/bin/sh", "-c", SLEEPS), cwd=workspace, env={})
        around = spawn.through
        before = (around.program, *around.options, "--") if isinstance(around, Bubblewrap) else ()

        def start(_: int) -> None:
            subprocess.run(
                (*before, *spawn.argv), cwd=spawn.cwd, env=spawn.env, capture_output=True, check=True
            )

        began = time.perf_counter()
        list(pool.map(start, range(number)))
        return time.perf_counter() - began


def one() -> Iterator[Figure]:
    """One trial from the command line."""
    with suite(MOCK) as (data, scenario, targets):
        found = median_of(5, lambda: _trials(data, scenario, targets, 1))
    bare = median_of(
        5, lambda: run([MANAGE[0], "-c", "import django; django.setup"], Path(tempfile.gettempdir()))
    )
    yield Figure("one trial from the command line, median of 5", found.wall, "s", 1.0, bare.wall)
    yield Figure("one trial, with a new database, median of 3", median_of(3, _first_trial).wall, "s", 1.5)


def _first_trial() -> Spent:
    """Run one trial where there is no database yet."""
    with suite(MOCK) as (data, scenario, targets):
        return _trials(data.parent / "new", scenario, targets, 1)
