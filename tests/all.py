"""Runs every test that this machine can run: `python -m tests.all [pytest's arguments]`, which is `make test`.

First the pure parts by table, which take no two seconds; then everything else on SQLite and, at the same time, what
touches the database again on a private PostgreSQL with a private Redis. Each of these two passes begins in a process of
its own. A third helps from the beginning, for tests wait half of the time for processes, servers and a browser. Whoever
is done with one pass takes files of the other's that nobody has begun. Where a file or folder is named, the first pass
is left out.
What kills servers and what draws many random numbers takes minutes; `python -m tests.slow` runs it.
EVALHUB_TEST_REQUIRE=browser,postgres,redis,sandbox makes a missing program a failure instead of a skip.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lanes import Shared, lanes, side_by_side
from tests.passes import ROOT, Environment, Pass, code_of, run, together
from tests.services.servers import postgres, redis

PURE = ["-c", "tests/evaluators/pytest.ini", "--rootdir", ".", "tests/evaluators", "-m", "table"]
SLOW = "fault or simulation"
"""Left to `python -m tests.slow`."""
ON_EVERY_DATABASE = f"(database or worker) and not browser and not own_servers and not ({SLOW})"
EMBEDDED: Environment = {"DATABASE_URL": None, "EVALHUB_BROKER_URL": None}


def names_files(arguments: list[str]) -> bool:
    """Tell whether pytest's arguments say where to look."""
    return any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-"))


@contextmanager
def embedded() -> Iterator[Environment]:
    """Give the environment of what brings its own database and broker."""
    yield EMBEDDED


@contextmanager
def servers() -> Iterator[Environment]:
    """Give the environment of what runs on PostgreSQL and Redis. Raises `NotHere`."""
    with postgres() as database, redis() as broker:
        yield {"DATABASE_URL": database, "EVALHUB_BROKER_URL": broker}


def passes(arguments: list[str]) -> list[Pass]:
    """Run the first pass by itself, for it is timed, and the two others side by side."""
    named = names_files(arguments)
    first = [] if named else [run("Pure parts by table", [*PURE, *arguments], EMBEDDED)]
    rest = arguments if named else ["-m", f"not table and not ({SLOW})", *arguments]
    with TemporaryDirectory(prefix="evalhub-shared-") as taken:
        one = Shared("SQLite and the embedded broker", rest, embedded, Path(taken, "sqlite"))
        other = Shared(
            "PostgreSQL and Redis", ["-m", ON_EVERY_DATABASE, *arguments], servers, Path(taken, "postgres")
        )
        for each in (one, other):
            each.folder.mkdir()
        done = side_by_side(lanes(one, other, processors=os.cpu_count() or 1))
    return [*first, *(together(done, each.name) for each in (one, other))]


def main(arguments: list[str]) -> int:
    """Run every pass; return 0 when none failed."""
    began = time.monotonic()
    done_ones = passes(arguments)
    for done in done_ones:
        print(f"\n{done.name}, {done.seconds:.0f} s, did not run:")
        print("\n".join(f"  {line}" for line in done.skipped) or "  nothing was left out.")
    for done in done_ones:
        # With -qq pytest tells no numbers.
        print(f"\n{done.name}:\n{done.summary or f'ended with exit code {done.code}'}")
    print(f"\nAll of it took {time.monotonic() - began:.0f} s.")
    return code_of(done_ones)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
