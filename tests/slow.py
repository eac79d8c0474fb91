"""Runs the tests that take minutes: `python -m tests.slow [pytest's arguments]`, which is `make test-slow`.

They kill and starve servers and processes, or hold only over many random draws. They run on a private PostgreSQL and
Redis. EVALHUB_TEST_REQUIRE makes a missing program a failure instead of a skip, as in `tests.all`.
"""

from __future__ import annotations

import sys

from tests.all import SLOW, on_servers

if __name__ == "__main__":
    sys.exit(on_servers(["-m", SLOW, *sys.argv[1:]]))
