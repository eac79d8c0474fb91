"""Runs the tests that take minutes: `python -m tests.slow [pytest's arguments]`, which is `make test-slow`.

First the simulations, which hold only over many random draws, and the tests that take more than ten seconds, on SQLite;
then the latter again on a private PostgreSQL and Redis, beside the tests that kill and starve servers of their own.
EVALHUB_TEST_REQUIRE makes a missing program a failure instead of a skip, as in `tests.all`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tests.all import ON_EVERY_DATABASE, PROCESSES, on_servers, run, worst

SPREAD = [*PROCESSES, "--dist", "worksteal"]
SLOW = "slow and not (fault or simulation or agents)"


def passes(arguments: list[str]) -> Iterator[int]:
    """Run one pass after the other; yield their exit codes."""
    yield run("SQLite and the embedded broker", [*SPREAD, "-m", f"simulation or {SLOW}", *arguments], {})
    yield on_servers([*SPREAD, "-m", f"fault or {SLOW} and {ON_EVERY_DATABASE}", *arguments])


if __name__ == "__main__":
    sys.exit(worst(passes(sys.argv[1:])))
