"""What a benchmark says, and how it measures."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, str(ROOT / "manage.py")]


@dataclass(frozen=True)
class Figure:
    """One measured number beside its target; smaller is better unless `more` says otherwise."""

    name: str
    value: float
    unit: str
    target: float
    reference: float | None = None
    """The same work in a bare loop, in the same unit and in the same run."""
    more: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.target if self.more else self.value <= self.target

    def __str__(self) -> str:
        mark = "ok  " if self.met else "MISS"
        sign = "≥" if self.more else "≤"
        beside = (
            f"  bare loop {self.reference:.2f}, ratio {self.value / self.reference:.2f}"
            if self.reference
            else ""
        )
        return f"{mark} {self.name:58} {self.value:9.2f} {self.unit:8} target {sign} {self.target:g}{beside}"


@dataclass(frozen=True)
class Spent:
    """What a child process took."""

    wall: float
    cpu: float
    output: str


def run(argv: Sequence[str], data: Path, **env: str) -> Spent:
    """Run a command to its end with a data directory; wall and CPU seconds include its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        argv,
        cwd=ROOT,
        env={**_environment(), "EVALHUB_DATA": str(data), **env},
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(wall, cpu, done.stdout)


def _environment() -> dict[str, str]:
    """Return this process's environment, with compiled files as everybody has them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def median_of(times: int, work: Callable[[], Spent]) -> Spent:
    """Do the work so many times, and return what the run with the median wall time spent."""
    runs = sorted((work() for _ in range(times)), key=lambda spent: spent.wall)
    return runs[len(runs) // 2]


@contextmanager
def suite(targets: str, gate: str = "{type: no_transcript_errors}") -> Iterator[tuple[Path, Path, Path]]:
    """Give a data directory with a migrated database, a suite of one scenario and a targets file."""
    with tempfile.TemporaryDirectory(prefix="evalhub-bench-") as folder:
        root = Path(folder)
        scenario, target_file, data = root / "trivial.yaml", root / "targets.yaml", root / "data"
        scenario.write_text(
            "name: trivial\ndescription: One gate.\ntask: {prompt: Do nothing.}\ntarget: {binary: nothing}\n"
            "record_tool: false\n"
            f"evaluation:\n  gates:\n    - {gate}\n"
        )
        target_file.write_text(targets)
        run([*MANAGE, "migrate", "-v0"], data)
        yield data, scenario, target_file
