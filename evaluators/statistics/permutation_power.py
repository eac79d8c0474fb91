"""Compute how often the tests of pass rates find a change, exactly or over drawn results.

numpy and scipy are imported where they are used, because they would double the time in which a web process starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from evaluators.statistics.significance import Arms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REPEATS = 2_000
"""Drawn results of each design: a power of 80 % is known within 2 points."""
SEED = 2024
_TOLERANCE = 1e-9
_NUISANCE = 200
"""Pass rates over which Boschloo's p is maximised."""


class RateTestLevel(NamedTuple):
    """When a test of pass rates calls a change one."""

    alpha: float
    """Its p must be below this."""
    smallest: float = 0.0
    """The observed change must be at least this large, 0 to 1."""
    one_sided: bool = False
    """Whether only a drop is tested, as fresh trials are; two runs are tested both ways."""


class TrialCounts(NamedTuple):
    """The trials of each scenario on both sides."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def lattice_length(counts: TrialCounts) -> int:
    """Return how many sums of differences the permutations of such results can have at most."""
    scale = lcm(*counts.before, *counts.after)
    return 2 * scale * len(counts.before) + 1


def found_share(
    rates: Sequence[float], later: Sequence[float], counts: TrialCounts, level: RateTestLevel
) -> float:
    """Return in which share of drawn results the permutation test within scenarios finds a lower pass rate."""
    import numpy as np

    drawn_before, drawn_after = _draw(counts)
    passes = np.empty((2, REPEATS, len(rates)), dtype=np.int64)
    for side, (uniform, chances) in enumerate(((drawn_before, rates), (drawn_after, later))):
        for key, (draws, chance) in enumerate(zip(uniform, chances, strict=True)):
            passes[side, :, key] = np.count_nonzero(draws < chance, axis=1)
    before, after = np.array(counts.before), np.array(counts.after)
    fall = (passes[0] / before - passes[1] / after).mean(axis=1)
    large = (fall > 0) & (fall >= level.smallest - _TOLERANCE)
    ps = _permutation_ps(passes[0], passes[1], counts, level)
    return float(np.count_nonzero(large & (ps < level.alpha)) / REPEATS)


@lru_cache(maxsize=4)
def _draw(counts: TrialCounts) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Return numbers from 0 to 1 for each scenario's trials: those below its rate pass, so more of a higher rate."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    before, after = (
        [generator.random((REPEATS, n), dtype=np.float32) for n in side]
        for side in (counts.before, counts.after)
    )
    return before, after


def _permutation_ps(
    before: NDArray[np.int64], after: NDArray[np.int64], counts: TrialCounts, level: RateTestLevel
) -> NDArray[np.float64]:
    """Return the p of each row of passes as `within_scenario_p` does: by the product of characteristic functions."""
    import numpy as np

    scale = lcm(*counts.before, *counts.after)
    length = 1 << (lattice_length(counts) - 1).bit_length()
    log_transform = np.zeros((len(before), length // 2 + 1), dtype=np.complex128)
    observed = np.zeros(len(before), dtype=np.int64)
    designs = list(zip(counts.before, counts.after, strict=True))
    for design in set(designs):
        n, m = design
        keys = [key for key, each in enumerate(designs) if each == design]
        totals = before[:, keys] + after[:, keys]
        of_total = np.zeros((len(before), n + m + 1))
        for column in totals.T:
            of_total[np.arange(len(before)), column] += 1
        log_transform += of_total @ _log_transforms(n, m, scale, length)
        observed += (after[:, keys] * (scale // m) - before[:, keys] * (scale // n)).sum(axis=1)
    chances = np.fft.irfft(np.exp(log_transform), n=length, axis=1)
    rows = np.arange(len(before))
    if level.one_sided:
        chances = np.roll(chances, length // 2, axis=1)
        at = observed + length // 2
        return np.cumsum(chances, axis=1)[rows, at] - chances[rows, at] / 2
    folded = chances[:, : length // 2 + 1].copy()
    folded[:, 1 : length // 2] += chances[:, : length // 2 : -1]
    at_least = np.cumsum(folded[:, ::-1], axis=1)[:, ::-1]
    far = np.abs(observed)
    return at_least[rows, far] - folded[rows, far] / 2


@lru_cache(maxsize=64)
def _log_transforms(n: int, m: int, scale: int, length: int) -> NDArray[np.complex128]:
    """Return the logarithm of the transform of a scenario's difference, for each number of passes on both sides."""
    import numpy as np
    from scipy.stats import hypergeom

    transforms = np.empty((n + m + 1, length // 2 + 1), dtype=np.complex128)
    for passes in range(n + m + 1):
        after = np.arange(max(0, passes - n), min(m, passes) + 1)
        chances = hypergeom.pmf(after, n + m, passes, m)
        one = np.zeros(length)
        one[(after * (scale // m) - (passes - after) * (scale // n)) % length] = chances
        transform = np.fft.rfft(one)
        # A power of 0 is 0 as well, and its logarithm must not be infinite times 0.
        transform[np.abs(transform) < 1e-200] = 1e-200
        transforms[passes] = np.log(transform)
    return transforms


def boschloo_power(rate: float, later: float, before: int, after: int, level: RateTestLevel) -> float:
    """Return in which share of results Boschloo's test of one scenario finds a lower pass rate, exactly."""
    import numpy as np
    from scipy.stats import binom

    chances = np.outer(
        binom.pmf(np.arange(before + 1), before, rate), binom.pmf(np.arange(after + 1), after, later)
    )
    return float(chances[_boschloo_region(before, after, level)].sum())


def is_lower_by_boschloo(arms: Arms, level: RateTestLevel) -> bool:
    """Return whether Boschloo's test of one scenario finds a lower pass rate. Fast where many results are asked."""
    region = _boschloo_region(arms.trials_before, arms.trials_after, level)
    return bool(region[arms.before, arms.after])


@lru_cache(maxsize=256)
def _boschloo_region(before: int, after: int, level: RateTestLevel) -> NDArray[np.bool_]:
    """Return which results are a significant and large drop, by the passes before and after.

    Boschloo's p is the largest chance over all pass rates of a result whose Fisher's p isn't larger (Boschloo 1970).
    """
    import numpy as np
    from scipy.stats import binom, hypergeom

    a, b = np.meshgrid(np.arange(before + 1), np.arange(after + 1), indexing="ij")
    fisher = hypergeom.cdf(b, before + after, a + b, after)
    order = np.argsort(fisher, axis=None, kind="stable")
    ordered = fisher.ravel()[order]
    rates = np.linspace(0, 1, _NUISANCE + 1)
    of_before = binom.pmf(np.arange(before + 1)[:, None], before, rates)
    of_after = binom.pmf(np.arange(after + 1)[:, None], after, rates)
    chances = (of_before[:, None, :] * of_after[None, :, :]).reshape(fisher.size, -1)[order]
    # Equal p belong together: the last of them has the chances of all.
    last = np.searchsorted(ordered, ordered + _TOLERANCE, side="right") - 1
    one_sided = np.cumsum(chances, axis=0)[last].max(axis=1)
    ps = np.empty(fisher.size)
    ps[order] = one_sided if level.one_sided else 2 * one_sided
    fall = a / before - b / after
    is_large = (fall > 0) & (fall >= level.smallest - _TOLERANCE)
    return (ps.reshape(fisher.shape) < level.alpha) & is_large
