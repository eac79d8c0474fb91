"""Runs the tests that take minutes: `python -m tests.slow [pytest's arguments]`, which is `make test-slow`.

First the simulations, which hold only over many random draws; then the slow tests on SQLite, and again on a private
PostgreSQL and Redis. A first argument of `simulations`, `sqlite` or `postgresql` runs one of the three, and `sample`
one case of each simulation. `make test-faults` runs the tests that kill and starve servers.
EVALHUB_TEST_REQUIRE makes a missing program a failure instead of a skip, as in `tests.all`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from tests.all import ON_EVERY_DATABASE, ROOT, names_files, on_servers, run, worst

# No more than there are processors, because `.ci/run` runs the agents' tests beside these.
SPREAD = ["-n", str(os.cpu_count() or 1), "--dist", "load", "--maxschedchunk", "1"]
SAMPLE = "EVALHUB_TEST_SAMPLE"
"""The variable with which only one case of each simulation is collected."""
SLOW = "slow and not (fault or simulation or agents)"


def marked_files(mark: str) -> list[str]:
    """Return the files that have tests with a mark: to collect all others takes as long as some of them."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        str(path.relative_to(ROOT)) for path in files if f"mark.{mark}" in path.read_text(encoding="utf-8")
    ]


def chosen(mark: str, arguments: list[str]) -> list[str]:
    """Return pytest's arguments, with the files to run unless they name some."""
    files = [] if names_files(arguments) else marked_files(mark)
    return [*SPREAD, *files, *arguments]


def simulations(arguments: list[str]) -> int:
    return run("Simulations", ["-m", "simulation", *chosen("simulation", arguments)], {})


def sampled_simulations(arguments: list[str]) -> int:
    """Run one case of each simulation, which is what `.ci/run` has time for."""
    os.environ[SAMPLE] = "1"
    return simulations(arguments)


def on_sqlite(arguments: list[str]) -> int:
    return run("SQLite and the embedded broker", ["-m", SLOW, *chosen("slow", arguments)], {})


def on_postgresql(arguments: list[str]) -> int:
    return on_servers(["-m", f"{SLOW} and {ON_EVERY_DATABASE}", *chosen("slow", arguments)])


PASSES = {"simulations": simulations, "sqlite": on_sqlite, "postgresql": on_postgresql}


def passes(arguments: list[str]) -> Iterator[int]:
    """Run one pass after the other, or the one that the first argument names; yield their exit codes."""
    if arguments[:1] == ["sample"]:
        yield sampled_simulations(arguments[1:])
    elif arguments and arguments[0] in PASSES:
        yield PASSES[arguments[0]](arguments[1:])
    else:
        yield from (each(arguments) for each in PASSES.values())


if __name__ == "__main__":
    sys.exit(worst(passes(sys.argv[1:])))
