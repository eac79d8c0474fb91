"""Comparing a run with its baseline, or with its line, when it closes: 50 scenarios of five trials in each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import MANAGE, Figure, run

_COMPARE = """
from random import Random
from statistics import median
from time import perf_counter
from django.db import transaction
from runs.compare.comparison import compare_with_baseline
from runs.results.rollups import write_rollups
from tests.builders import make_project, make_run, make_suite, make_trials
keys, rng, times = [f"s{n}" for n in range(50)], Random(7), []
version = make_suite(make_project("bench"), keys)
rates = [rng.betavariate(2.4, 0.6) for _ in keys]
for number in range(17):
    closed = make_run(version)
    make_trials(
        closed, {key: ["pass" if rng.random() < rate else "fail" for _ in range(5)] for key, rate in zip(keys, rates)}
    )
    with transaction.atomic():
        write_rollups(closed)
        began = perf_counter()
        compare_with_baseline(closed)
        times.append(perf_counter() - began)
    lines = len(closed.old_side.get("runs", ()))
    assert lines == (0 if number < 5 else min(number, 10)), lines
print(median(times[1:5]) * 1000, median(times[11:]) * 1000)
"""


def comparing() -> Iterator[Figure]:
    """A warm worker's time for the comparison alone; the first one of a process also imports scipy."""
    with tempfile.TemporaryDirectory(prefix="evalhub-bench-") as folder:
        run([*MANAGE, "migrate", "-v0"], Path(folder))
        spent = run([*MANAGE, "shell", "--no-imports", "-c", _COMPARE], Path(folder))
        alone, line = map(float, spent.output.split())
        yield Figure("compare 50 × 5 with the baseline, at the close", alone, "ms", 200.0)
        yield Figure("compare 50 × 5 with a line of 10 runs, at the close", line, "ms", 300.0)
