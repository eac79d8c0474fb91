"""Run all that this machine can run: `python -m tests.parts [part…] [pytest's arguments]`, which is `make test-all`.

Without a part: what `make test` runs, then every part. `postgresql` has every test that uses the database, on PostgreSQL
and Redis; `slow` what takes long, on SQLite; `simulations` what holds over many random draws; `faults` what kills and
starves servers; `agents` what runs installed agents. `sample` runs whole files of them, chosen by SAMPLE (the commit's
hash unless it is given), for at most `SAMPLE_SECONDS`; first the slow tests of the rooms that changed since BASE (the
commit before this one).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.all import (
    DIFFERING,
    NOTHING_COLLECTED,
    ON_EVERY_DATABASE,
    PROCESSORS,
    ROOT,
    find_tests,
    find_worst,
    names_files,
    run,
    run_on_servers,
    run_on_sqlite,
)
from tests.services.servers import postgres, redis

SAMPLE_SECONDS = 300
WITHOUT_ROWS = ("tests/bench", "tests/browser", "tests/evaluators", "tests/real_agents")
LAST_START = 200
"""Seconds of a sample after which no file is started."""


def find_marked_files(*marks: str) -> list[str]:
    """Return the files that have tests with one of these marks: to collect all others takes as long as some of them."""
    return [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if any(f"mark.{mark}" in path.read_text(encoding="utf-8") for mark in marks)
    ]


def find_folder_files(folder: str) -> list[str]:
    """Return the test files of a folder."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / folder).rglob("test_*.py"))]


def find_files_with_rows() -> list[str]:
    """Return the test files in which a test may use the database, which fixtures decide."""
    return [file for file in find_folder_files("tests") if not file.startswith(WITHOUT_ROWS)]


class Part(NamedTuple):
    """A part of `make test-all`: its tests and how many processes run them."""

    mark: str
    """pytest's expression for its tests."""
    find_files: Callable[[], list[str]]
    processes: int
    distribution: tuple[str, ...] = ("load", "--maxschedchunk", "1")
    on_servers: bool = False


PARTS = {
    "postgresql": Part(
        f"{ON_EVERY_DATABASE} and not (fault or simulation)",
        find_files_with_rows,
        PROCESSORS + 1,
        ("worksteal",),
        on_servers=True,
    ),
    "slow": Part(
        "slow and not (fault or simulation or agents)",
        lambda: find_marked_files("slow", "sampled"),
        PROCESSORS + 1,
    ),
    "simulations": Part("simulation", lambda: find_marked_files("simulation"), PROCESSORS),
    # These wait for servers to come back.
    "faults": Part(
        "fault", lambda: [*find_folder_files("tests/faults"), *find_marked_files("fault")], PROCESSORS + 3
    ),
    "agents": Part(
        "agents",
        lambda: find_folder_files("tests/real_agents"),
        PROCESSORS + 1,
        ("loadgroup", "--no-loadscope-reorder"),
    ),
}


def run_part(name: str, arguments: list[str]) -> int:
    """Run a part; return pytest's exit code."""
    if name == "agents":
        if subprocess.run(["bin/agents"], cwd=ROOT, check=False).returncode != 0:
            print("SKIPPED the agents: npm can't install them here.", flush=True)
            return 0
        required = filter(None, [os.environ.get("EVALHUB_TEST_REQUIRE"), "agents"])
        os.environ["EVALHUB_TEST_REQUIRE"] = ",".join(required)
    part = PARTS[name]
    files = [] if names_files(arguments) else part.find_files()
    spread = ["-n", str(part.processes), "--dist", *part.distribution]
    argv = [*spread, "-m", part.mark, *files, *arguments]
    return run_on_servers(name, argv) if part.on_servers else run(name, argv, {})


def ask_git(*words: str) -> list[str]:
    """Return the lines that git prints, none where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def find_changed_tests(base: str) -> list[str]:
    """Return the folders of tests for the source files that differ from a commit."""
    changed = ask_git("diff", "--name-only", base, "HEAD")
    rooms = {"/".join(Path(name).parts[:2]) for name in changed if len(Path(name).parts) > 2}
    return sorted({folder for room in rooms for folder in find_tests(room) if folder.startswith("tests/")})


def order_sample(seed: str, changed: list[str]) -> list[tuple[str, str]]:
    """Return (part, file) for each file of each part: the slow ones of changed folders first, the rest as the seed has it."""
    units = [
        (name, file)
        for name, part in PARTS.items()
        for file in part.find_files()
        # `make test` has these.
        if not (part.on_servers and file.startswith(DIFFERING))
    ]
    if not (ROOT / ".agents").is_dir():
        units = [each for each in units if each[0] != "agents"]
    random.Random(seed).shuffle(units)
    return sorted(units, key=lambda each: not (each[0] == "slow" and each[1].startswith(tuple(changed))))


class Deadlines(NamedTuple):
    """When a sample starts no further file, and when it ends those that run, by the monotonic clock."""

    last_start: float
    end: float


def run_file(name: str, file: str, deadlines: Deadlines) -> int | None:
    """Run the tests of a part in one file; print what pytest says of them.

    Returns its exit code, None where time was up before it ended.
    """
    if time.monotonic() > deadlines.last_start:
        return None
    part, servers = PARTS[name], {}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-m", part.mark, file]
    with ExitStack() as opened:
        if part.on_servers:
            servers = {
                "DATABASE_URL": opened.enter_context(postgres()),
                "EVALHUB_BROKER_URL": opened.enter_context(redis()),
            }
        output = opened.enter_context(tempfile.TemporaryFile("w+"))
        began = time.monotonic()
        process = subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **servers}, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait(max(1.0, deadlines.end - time.monotonic()))
        except subprocess.TimeoutExpired:
            # As Ctrl-C does, so that the tests end what they started.
            process.send_signal(signal.SIGINT)
            process.wait()
            print(f"{time.monotonic() - began:6.1f} s  {name} {file}: ended, because time was up", flush=True)
            return None
        output.seek(0)
        lines = output.read().splitlines()
    print(f"{time.monotonic() - began:6.1f} s  {name} {file}: {lines[-1] if lines else code}", flush=True)
    if code not in (0, NOTHING_COLLECTED):
        print(*lines, sep="\n", flush=True)
    return code


def run_sample() -> int:
    """Run what a seed chooses of all parts, for at most `SAMPLE_SECONDS`."""
    seed = os.environ.get("SAMPLE") or (ask_git("rev-parse", "HEAD") or ["0"])[0]
    changed = find_changed_tests(os.environ.get("BASE") or "HEAD^")
    units = order_sample(seed, changed)
    print(
        f"\n*** A sample of make test-all; again with: make test-all PART=sample SAMPLE={seed}\n", flush=True
    )
    began = time.monotonic()
    deadlines = Deadlines(began + LAST_START, began + SAMPLE_SECONDS)
    with ThreadPoolExecutor(PROCESSORS) as pool:
        codes = list(pool.map(lambda unit: run_file(*unit, deadlines), units))
    reached = [code for code in codes if code is not None]
    failed = sum(code not in (0, NOTHING_COLLECTED) for code in reached)
    print(f"\n{len(reached)} of {len(units)} files were run; {failed} failed.", flush=True)
    return find_worst(reached)


def run_parts(arguments: list[str]) -> Iterator[int]:
    """Run the parts that the first arguments name, or what `make test` runs and every part; yield their exit codes."""
    named = [word for word in arguments if word in PARTS]
    rest = [word for word in arguments if word not in PARTS]
    if not named:
        yield from run_on_sqlite(rest)
    for part in named or PARTS:
        yield run_part(part, rest)


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(run_sample() if words[:1] == ["sample"] else find_worst(run_parts(words)))
