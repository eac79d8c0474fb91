"""Runs the tests that take minutes: `python -m tests.slow [pytest's arguments]`, which is `make test-slow`.

First the simulations, which hold only over many random draws, on all processors; then, one at a time, the tests that
kill and starve servers and processes, on a private PostgreSQL and Redis. EVALHUB_TEST_REQUIRE makes a missing program
a failure instead of a skip, as in `tests.all`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from tests.all import in_parallel, on_servers, run, worst


def passes(arguments: list[str]) -> Iterator[int]:
    """Run the simulations, then the faults; yield their exit codes."""
    yield run("Simulations", [*in_parallel(os.cpu_count() or 1), "-m", "simulation", *arguments], {})
    yield on_servers(["-m", "fault", *arguments])


if __name__ == "__main__":
    sys.exit(worst(passes(sys.argv[1:])))
