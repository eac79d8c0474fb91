"""Runs commands as targets do, and looks at the machine's real processes and descriptors for their tests."""

from __future__ import annotations

import gc
import os
import secrets
import time
from pathlib import Path
from typing import Any

from runs.sandbox.process import ProcessResult, run_process

ENV = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}


def run(command: str | list[str], tmp_path: Path, **changes: Any) -> ProcessResult:
    """Run a command in a folder, for at most 20 s unless a change says otherwise."""
    options = {"cwd": tmp_path, "env": ENV, "timeout_seconds": 20.0, **changes}
    return run_process(command, **options)


def unique_seconds(least: float = 60.0) -> str:
    """Return at least so many seconds to sleep that no other test names, so its processes are known."""
    # Not from `random`, which pytest-randomly seeds alike for every test.
    return f"{least}{secrets.randbelow(10**12):012}"


def pids_with(word: str) -> list[int]:
    """Processes alive whose command line holds a word."""
    return [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _has(entry, word)
    ]


def _has(entry: Path, word: str) -> bool:
    try:
        state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        return state not in "ZX" and word.encode() in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def nothing_left(word: str, *, within_seconds: float = 1.0) -> bool:
    """Whether every process with the word is gone within the time."""
    until = time.monotonic() + within_seconds
    while pids_with(word):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def open_descriptors() -> int:
    """How many file descriptors this process holds, those apart that other tests left to the collector."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))
