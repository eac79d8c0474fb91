"""Runs the tests that take minutes: `python -m tests.slow [pytest's arguments]`, which is `make test-slow`.

They kill and starve servers and processes, or hold only over many random draws. They run on a private PostgreSQL and
Redis. EVALHUB_TEST_REQUIRE makes a missing program a failure instead of a skip, as in `tests.all`.
"""

from __future__ import annotations

import sys

from tests.all import SLOW, servers
from tests.passes import code_of, run


def main(arguments: list[str]) -> int:
    """Run the slow tests; return 0 when none failed."""
    with servers() as environment:
        done = run("Faults and simulations on PostgreSQL and Redis", ["-m", SLOW, *arguments], environment)
    print("\n".join(f"  did not run: {line}" for line in done.skipped))
    return code_of([done])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
