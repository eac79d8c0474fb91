"""Run what a change needs: `python -m tests.all [pytest's arguments]`, which is `make test`.

First the table tests of the pure parts; then everything else on SQLite, the folders whose tests wait for processes
before those that compute; then, on a private PostgreSQL with a private Redis, the folders in which databases differ.
Each pass but the first is distributed by pytest-xdist to processes with their own database and broker. If you name a
file or folder, only that runs; a folder of the source, such as `runs/compare`, stands for its tests.
`python -m tests.parts` (`make test-all`) runs the rest: tests marked `slow`, `simulation` or `fault`, installed agents,
and every test that uses the database on PostgreSQL.
EVALHUB_TEST_REQUIRE=browser,postgres,redis,sandbox makes a missing program a failure instead of a skip.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.requirements import required
from tests.services.servers import NotHere, postgres, redis

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ("runs", "evaluators", "scenarios")
ROOMS: dict[str, dict[str, list[str]]] = {
    "evalhub": {
        "": ["tests/web/test_*.py", "tests/commands/test_[c-d]*.py", "tests/services", "tests/operations"],
        "teams": ["tests/teams", "tests/web/test_*.py"],
        "lib": ["tests/web/test_*.py", "tests/runs/db", "tests/operations"],
        "web": ["tests/web/test_*.py", "tests/web/results", "tests/web/compare", "tests/operations"],
    },
    "static": {"": ["tests/browser"]},
    "docker": {"": ["tests/docker"]},
    "templates": {},
}
"""The tests of folders that have none of the same name, by the part of the path that decides."""
PURE = ["-c", "tests/evaluators/tables.ini", "--rootdir", ".", "-m", "table"]
STATISTICS = "tests/evaluators/statistics"
TABLES = ([STATISTICS], ["tests/evaluators", f"--ignore={STATISTICS}"])
"""What each process of the first pass runs, which has no plugin to distribute tests."""
LONG = "slow or fault or simulation or agents"
"""What `make test` leaves to `make test-all`."""
ON_EVERY_DATABASE = (
    "(database or worker) and not browser and not own_servers and not agents and not one_database"
)
WAITING = (
    "tests/browser",
    "tests/worker",
    "tests/commands",
    "tests/docker",
    "tests/agentv",
    "tests/layer1",
    "tests/runs/engine",
    "tests/runs/sandbox",
    "tests/runs/suites",
    "tests/runs/targets",
    "tests/runs/workers",
)
"""Folders whose tests wait for processes half of the time, so that more of them run at once."""
DIFFERING = (
    "tests/api/results",
    "tests/operations",
    "tests/runs/db",
    "tests/runs/exchange",
    "tests/runs/results",
    "tests/runs/sandbox",
    "tests/runs/workers",
    "tests/services",
    "tests/worker",
)
"""Folders in which PostgreSQL differs from SQLite: claims, jobs, search, JSON, backups, text from outside."""
PROCESSORS = os.cpu_count() or 1
NOTHING_COLLECTED = 5
Environment = dict[str, str]


def names_files(arguments: Sequence[str]) -> bool:
    """Return whether pytest's arguments name a file or folder."""
    return any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-"))


def find_tests(word: str) -> list[str]:
    """Return the folders and files of tests for a folder or file of the source; any other word as it is."""
    path = word.strip("/")
    package, *parts = path.removesuffix(".py").split("/")
    if package not in (*SOURCE, *ROOMS) or not (ROOT / path).exists():
        return [word]
    if package == "templates":
        found = (
            [f"tests/web/{parts[0]}", f"tests/{parts[0]}", "tests/web/test_*.py"] if parts else ["tests/web"]
        )
    elif package in ROOMS:
        rooms = ROOMS[package]
        found = next((rooms[part] for part in parts if part in rooms), rooms[""])
    else:
        while parts and not (ROOT / "tests" / package / "/".join(parts)).is_dir():
            parts.pop()
        found = [f"tests/{package}/{'/'.join(parts)}".rstrip("/")]
        if package == "runs" and parts:
            found += [f"tests/web/{parts[0]}", f"tests/api/{parts[0]}"]
        if package == "scenarios" and not parts:
            found += ["tests/web/suites", "tests/api/suites"]
    paths = [path for each in found for path in sorted(ROOT.glob(each))]
    return [path.relative_to(ROOT).as_posix() for path in paths]


def find_repeated(ids: Iterable[str]) -> list[str]:
    """Return the ids that several tests share, each once: pytest-xdist would run one of them and count no other."""
    return [each for each, number in Counter(ids).items() if number > 1]


def run(name: str, arguments: list[str], servers: Environment) -> int:
    """Run pytest, print its wall and processor time and return its exit code; without servers on SQLite."""
    print(f"\n*** {name}\n", flush=True)
    began, processor = time.monotonic(), _processor_seconds()
    argv = [sys.executable, "-m", "pytest", *arguments]
    code = subprocess.run(argv, cwd=ROOT, env={**_environment(), **servers}, check=False).returncode
    _print_times(name, began, processor)
    # A signal's number is negative, but not a success.
    return code if code >= 0 else 128 - code


def _environment() -> Environment:
    """Return the environment without servers, in which Python keeps byte code: pytest compiles every test for each process else."""
    left_out = ("DATABASE_URL", "EVALHUB_BROKER_URL", "PYTHONDONTWRITEBYTECODE")
    return {key: value for key, value in os.environ.items() if key not in left_out}


def _processor_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def run_tables(arguments: list[str]) -> int:
    """Run the tables of the pure parts, in processes of their own side by side; return the worst exit code."""
    name = "Pure parts by table"
    print(f"\n*** {name}\n", flush=True)
    began, processor = time.monotonic(), _processor_seconds()
    with ExitStack() as opened:
        halves = []
        for half in TABLES:
            output = opened.enter_context(tempfile.TemporaryFile("w+"))
            argv = [sys.executable, "-m", "pytest", "-q", *PURE, *half, *arguments]
            process = subprocess.Popen(
                argv, cwd=ROOT, env=_environment(), stdout=output, stderr=subprocess.STDOUT
            )
            halves.append((opened.enter_context(process), output))
        codes = []
        for process, output in halves:
            codes.append(process.wait())
            output.seek(0)
            print(output.read(), flush=True)
    _print_times(name, began, processor)
    return find_worst(code if code >= 0 else 128 - code for code in codes)


def _print_times(name: str, began: float, processor: float) -> None:
    seconds, spent = time.monotonic() - began, _processor_seconds() - processor
    print(f"\n*** {name}: {seconds:.0f} s, {spent:.0f} s of processor time\n", flush=True)


def run_on_servers(name: str, arguments: list[str]) -> int:
    """Run pytest on PostgreSQL and Redis."""
    try:
        with postgres() as database, redis() as broker:
            return run(name, arguments, {"DATABASE_URL": database, "EVALHUB_BROKER_URL": broker})
    except NotHere as error:
        print(f"\n*** {name}\n\nSKIPPED the whole pass: {error}", flush=True)
        return 1 if {"postgres", "redis"} & required() else 0


def spread(processes: int) -> list[str]:
    """Return pytest's arguments for so many processes: each takes tests from others when it has none left.

    Most files stay in one process, whose tests share expensive fixtures, but any two tests may run at the same time.
    """
    return ["-n", str(processes), "--dist", "worksteal", "-p", "tests.call_times"]


def run_passes(arguments: list[str]) -> Iterator[int]:
    """Run one pass after the other; yield their exit codes."""
    differing = ["-m", f"{ON_EVERY_DATABASE} and not ({LONG})"]
    named = [each for word in arguments for each in find_tests(word)]
    if names_files(named):
        # Of a named file everything, of a folder what is ordinary.
        whole = any(".py" in word for word in arguments if word.startswith("tests/"))
        chosen = [] if whole else ["-m", f"not ({LONG})"]
        yield run("SQLite", [*spread(PROCESSORS + 1), *chosen, *named], {})
        if any(word.startswith(DIFFERING) for word in named):
            yield run_on_servers("PostgreSQL and Redis", [*spread(PROCESSORS), *differing, *named])
        return
    yield from run_on_sqlite(arguments)
    servers = [*spread(PROCESSORS + 1), *differing, *DIFFERING]
    yield run_on_servers("PostgreSQL and Redis, where they differ", [*servers, *arguments])


def run_on_sqlite(arguments: list[str]) -> Iterator[int]:
    """Run the pure parts, then everything else on SQLite; yield the passes' exit codes."""
    ordinary = ["-m", f"not table and not ({LONG})"]
    yield run_tables(arguments)
    waiting = [*spread(PROCESSORS + 3), *ordinary, *WAITING]
    yield run("SQLite, tests that wait for processes", [*waiting, *arguments], {})
    computing = [*spread(PROCESSORS), *ordinary, *(f"--ignore={folder}" for folder in WAITING)]
    yield run("SQLite, tests that compute", [*computing, *arguments], {})


def find_worst(codes: Iterable[int]) -> int:
    """Return the worst exit code; a pass without matching tests is fine if another pass has some."""
    return max({*codes} - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(find_worst(run_passes(sys.argv[1:])))
