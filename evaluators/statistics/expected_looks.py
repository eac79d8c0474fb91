"""Estimate how many trials a run until a verdict takes if nothing has changed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from evaluators.statistics.looks import is_unlikely, look_sizes, planned_levels, unplanned_levels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PATHS = 400
"""Simulated comparisons: the mean is exact to about 2 % of itself."""
SEED = 14


class ExpectedTrials(NamedTuple):
    """Trials of each scenario of one side, from the first look's to the most."""

    expected: float
    """The mean if nothing has changed."""
    greatest: int


@lru_cache(maxsize=256)
def expected_trials(rates: tuple[float, ...], first: int, most: int, baseline: int) -> ExpectedTrials:
    """Return how many trials of each scenario a run until a verdict takes if pass rates stay as they are.

    `rates` are those of the scenarios, 0 to 1; `baseline` are the trials of each in a baseline that gets no more, 0
    where both sides are run. Looks are simulated from a fixed seed, with the normal approximation of the pass rate's
    test; single scenarios that chance makes look changed are left out, which adds a few percent.
    """
    import numpy as np

    rng = np.random.default_rng(SEED)
    shape = (PATHS, len(rates))
    chances = np.array(rates)
    old = rng.binomial(baseline, chances, shape) if baseline else np.zeros(shape, np.int64)
    new, before, total = np.zeros(shape, np.int64), 0, 0.0
    running = np.ones(PATHS, bool)
    fractions: list[tuple[float, float]] = []
    for size in look_sizes(first, most):
        new += rng.binomial(size - before, chances, shape)
        if not baseline:
            old += rng.binomial(size - before, chances, shape)
        total += float(running.mean()) * (size - before)
        before, beside = size, baseline or size
        fraction = (1 / (baseline or most) + 1 / most) / (1 / beside + 1 / size)
        fractions.append((fraction, fraction))
        ps = _ps(old, beside, new, size)
        stops = ps < planned_levels(fractions).pass_rate
        if fraction >= 0.5 - 1e-9:
            stops |= np.array([is_unlikely(float(p), fraction) for p in ps])
        running &= ~stops
    return ExpectedTrials(total, most)


class Earlier(NamedTuple):
    """A scenario's results of two runs before further trials of both."""

    passes_before: int
    trials_before: int
    passes_after: int
    trials_after: int
    is_chosen: bool
    """Whether it gets further trials."""


@lru_cache(maxsize=256)
def expected_further_trials(scenarios: tuple[Earlier, ...], first: int, most: int) -> ExpectedTrials:
    """Return how many further trials of each chosen scenario two compared runs take until a verdict.

    As if the differences so far were chance: both runs' further trials have the scenario's rate in both together.
    Simulated as `expected_trials` does; the looks have what the comparison's first one left of the error.
    """
    import numpy as np

    rng, shape = np.random.default_rng(SEED), (PATHS, len(scenarios))
    old, n, new, m = (np.array(each)[None, :] for each in zip(*(each[:4] for each in scenarios), strict=True))
    chances = (old + new + 0.5) / (n + m + 1)
    chosen = np.array([each.is_chosen for each in scenarios])
    running, before, total = np.ones(PATHS, bool), 0, 0.0

    def information(size: int) -> float:
        old_n, new_n = n + size * chosen, m + size * chosen
        return float(len(scenarios) ** 2 / (1 / old_n + 1 / new_n).sum())

    seen = [(information(0),) * 2]
    for size in look_sizes(first, most):
        more = (size - before) * chosen
        old, new = old + rng.binomial(more, chances, shape), new + rng.binomial(more, chances, shape)
        total += float(running.mean()) * (size - before)
        before = size
        seen.append((information(size),) * 2)
        ps = _ps(old, n + size * chosen, new, m + size * chosen)
        stops = ps < unplanned_levels(seen).pass_rate
        fraction = seen[-1][0] / information(most)
        if fraction >= 0.5 - 1e-9:
            stops |= np.array([is_unlikely(float(p), fraction) for p in ps])
        running &= ~stops
    return ExpectedTrials(total, most)


def _ps(
    old: NDArray[np.int64],
    beside: NDArray[np.int64] | int,
    new: NDArray[np.int64],
    size: NDArray[np.int64] | int,
) -> NDArray[np.float64]:
    """Return the two-sided p of each path's pass rate (Cochran, Mantel and Haenszel with equal weights)."""
    import numpy as np
    from scipy.special import ndtr

    n, passes = beside + size, old + new
    variance = (passes * (n - passes) / ((n - 1) * beside * size)).sum(axis=1)
    difference = (new / size - old / beside).sum(axis=1)
    z = np.divide(np.abs(difference), np.sqrt(variance), out=np.zeros(len(old)), where=variance > 0)
    ps: NDArray[np.float64] = 2 * ndtr(-z)
    return ps
