"""Session files from disk to a closed run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import MANAGE, Figure, run
from tests.session_files import STEPS, claude

SESSIONS = 1_000
SESSION_BYTES = 1_000_000
OTHER = ("cat big.txt", 0, "x" * 20_000)
"""Most of a real session is other commands and their outputs."""


def sessions() -> Iterator[Figure]:
    """Import 1,000 sessions of Claude Code of 1 MB each."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "sessions")
        files.mkdir()
        steps = [*STEPS, *[OTHER] * (SESSION_BYTES // 41_000)]
        for n in range(SESSIONS):
            files.joinpath(f"{n}.jsonl").write_bytes(claude(f"c-{n}", steps))
        run([*MANAGE, "migrate", "-v0"], Path(folder))
        found = run([*MANAGE, "import_sessions", str(files), "--tool", "taskmgr"], Path(folder))
        if f"{SESSIONS} sessions ({SESSIONS} new)" not in found.output.replace(",", ""):
            raise SystemExit(f"Not all sessions were imported: {found.output}")
        yield Figure("1,000 sessions of 1 MB imported", found.wall, "s", 60.0)
