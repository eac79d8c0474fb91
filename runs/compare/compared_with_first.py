"""Compare several runs with the first one, for REST and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.compare.first_divergences import FirstDivergences, divergences_from
from runs.compare.fresh_trials import fresh_runs, pool_of
from runs.compare.measure_changes import RunComparison, compare_pools
from runs.models import Run


@dataclass(frozen=True)
class ComparedRun:
    """A run compared with the first one."""

    run: Run
    comparison: RunComparison
    divergences: FirstDivergences
    pooled: tuple[int, ...]
    """Keys of the runs with further trials of either that count."""


def compared_with_first(runs: Sequence[Run], *, fresh: bool = True) -> list[ComparedRun]:
    """Compare each later run with the first one, by default with the further trials of both.

    Three to six queries, and two for each run with newly failing scenarios. Expects the runs' guidance to be loaded.
    """
    found = fresh_runs(runs) if fresh else []
    base, *others = [pool_of(run, found) for run in runs]
    compared = compare_pools(base, others)
    divergences = divergences_from(base, list(zip(others, compared, strict=True)))
    return [
        ComparedRun(pool.run, comparison, apart, (*base.also, *pool.also))
        for pool, comparison, apart in zip(others, compared, divergences, strict=True)
    ]
