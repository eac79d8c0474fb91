"""Runs the tests that take minutes: `python -m tests.slow [pytest's arguments]`, which is `make test-slow`.

First the simulations, which hold only over many random draws, and the slow tests, on SQLite; then the latter again on
a private PostgreSQL and Redis. A first argument of `sqlite` or `postgresql` runs one of the two. `make test-faults`
runs the tests that kill and starve servers.
EVALHUB_TEST_REQUIRE makes a missing program a failure instead of a skip, as in `tests.all`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

from tests.all import ON_EVERY_DATABASE, ROOT, SAME_ON_EVERY_DATABASE, names_files, on_servers, run, worst

# `.ci/run` runs the agents' tests beside these. The simulations come last (conftest.py).
SPREAD = ["-n", str((os.cpu_count() or 1) + 1), "--dist", "load", "--maxschedchunk", "1"]
SLOW = "slow and not (fault or simulation or agents)"
_MARKED = re.compile(r"\bmark\.(slow|simulation)\b")


def slow_files() -> list[str]:
    """Return the files that have such tests: to collect all others takes as long as some of them."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if _MARKED.search(path.read_text(encoding="utf-8"))]


def chosen(arguments: list[str], *, left_out: tuple[str, ...] = ()) -> list[str]:
    """Return pytest's arguments, with the files to run unless they name some."""
    files = [] if names_files(arguments) else slow_files()
    return [*SPREAD, *(path for path in files if not path.startswith(left_out)), *arguments]


def on_sqlite(arguments: list[str]) -> int:
    return run("SQLite and the embedded broker", ["-m", f"simulation or {SLOW}", *chosen(arguments)], {})


def on_postgresql(arguments: list[str]) -> int:
    words = chosen(arguments, left_out=SAME_ON_EVERY_DATABASE)
    return on_servers(["-m", f"{SLOW} and {ON_EVERY_DATABASE}", *words])


PASSES = {"sqlite": on_sqlite, "postgresql": on_postgresql}


def passes(arguments: list[str]) -> Iterator[int]:
    """Run one pass after the other, or the one that the first argument names; yield their exit codes."""
    if arguments and arguments[0] in PASSES:
        yield PASSES[arguments[0]](arguments[1:])
    else:
        yield from (each(arguments) for each in PASSES.values())


if __name__ == "__main__":
    sys.exit(worst(passes(sys.argv[1:])))
