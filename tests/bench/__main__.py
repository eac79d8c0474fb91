"""Runs every benchmark but the long ones, or those whose name is given: `make bench ARGS="mock one"`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from tests.bench import (
    comparing,
    fairness,
    formats,
    ingest,
    pages,
    recording,
    search,
    sessions,
    soak,
    transcripts,
    trials,
    workers,
)
from tests.bench.figures import Figure

BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "one": trials.one,
    "mock": trials.mock,
    "processes": trials.processes,
    "start": workers.claim_to_start,
    "memory": workers.memory,
    "fairness": fairness.fairness,
    "transcripts": transcripts.speed,
    "recording": recording.recording,
    "agentv": formats.agentv,
    "endpoint": formats.endpoint,
    "pages": pages.pages,
    "drawing": pages.drawing,
    "million": pages.million,
    "search": search.search,
    "sessions": sessions.sessions,
    "ingest": ingest.ingest,
    "comparing": comparing.comparing,
    "soak": soak.soak,
}
LONG = frozenset({"million", "search", "soak"})
"""Run only when named, because they take hours or gigabytes."""


def chosen(names: list[str]) -> list[str]:
    """Return the benchmarks to run: those named, or all but the long ones."""
    return names or [name for name in BENCHMARKS if name not in LONG]


def main(names: list[str]) -> int:
    unknown = set(names) - BENCHMARKS.keys()
    if unknown:
        print(f"There is no benchmark '{min(unknown)}'. There are: {', '.join(BENCHMARKS)}.", file=sys.stderr)
        return 2
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; medians; see docs/performance.md",
        flush=True,
    )
    missed = 0
    for name in chosen(names):
        for figure in BENCHMARKS[name]():
            print(figure, flush=True)
            missed += not figure.met
    print(f"{missed} targets missed." if missed else "Every target met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
