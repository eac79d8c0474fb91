"""Runs every test that this machine can run: `python -m tests.all [pytest's arguments]`, which is `make test`.

First the pure parts by table, in under two seconds; then everything else on SQLite; then what touches the database again
on a private PostgreSQL with a private Redis. pytest-xdist deals out the files of the last two passes to processes that
have a database and a broker each: one more than there are processors, because tests wait half of the time. Where a file
or folder is named, the first pass is left out. What kills servers and what draws many random numbers takes minutes;
`python -m tests.slow` runs it.
EVALHUB_TEST_REQUIRE=browser,postgres,redis,sandbox makes a missing program a failure instead of a skip.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.requirements import required
from tests.services.servers import NotHere, postgres, redis

ROOT = Path(__file__).resolve().parent.parent
PURE = ["-c", "tests/evaluators/pytest.ini", "--rootdir", ".", "tests/evaluators", "-m", "table"]
SLOW = "fault or simulation"
"""Left to `python -m tests.slow`."""
ON_EVERY_DATABASE = f"(database or worker) and not browser and not own_servers and not ({SLOW})"
NOTHING_COLLECTED = 5
Environment = dict[str, str]


def names_files(arguments: list[str]) -> bool:
    """Tell whether pytest's arguments say where to look."""
    return any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-"))


def in_parallel(processors: int) -> list[str]:
    """Return what pytest-xdist is told; the tests of a file share what is expensive to make, so they stay together."""
    return ["-n", str(processors + 1), "--dist", "loadfile"] if processors > 1 else []


def run(name: str, arguments: list[str], servers: Environment) -> int:
    """Run pytest and return its exit code; without servers on SQLite and the embedded broker."""
    print(f"\n*** {name}\n", flush=True)
    kept = {
        key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "EVALHUB_BROKER_URL")
    }
    code = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env={**kept, **servers}, check=False
    ).returncode
    # A signal's number is below zero, but no way to end well.
    return code if code >= 0 else 128 - code


def on_servers(arguments: list[str]) -> int:
    """Run what touches the database on PostgreSQL and Redis."""
    name = "PostgreSQL and Redis"
    try:
        with postgres() as database, redis() as broker:
            return run(name, arguments, {"DATABASE_URL": database, "EVALHUB_BROKER_URL": broker})
    except NotHere as error:
        print(f"\n*** {name}\n\nSKIPPED the whole pass: {error}", flush=True)
        return 1 if {"postgres", "redis"} & required() else 0


def passes(arguments: list[str]) -> Iterator[int]:
    """Run one pass after the other; yield their exit codes."""
    named = names_files(arguments)
    if not named:
        yield run("Pure parts by table", [*PURE, *arguments], {})
    processes = in_parallel(os.cpu_count() or 1)
    rest = [] if named else ["-m", f"not table and not ({SLOW})"]
    yield run("SQLite and the embedded broker", [*processes, *rest, *arguments], {})
    yield on_servers([*processes, "-m", ON_EVERY_DATABASE, *arguments])


def worst(codes: Iterable[int]) -> int:
    """Return the worst exit code; what was asked for need not be in every pass, but in one."""
    return max({*codes} - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(worst(passes(sys.argv[1:])))
