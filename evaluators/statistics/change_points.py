"""Find the runs from which a measure changed.

Plain Python, because a page computes it: scipy and ruptures would cost a web process 70 MB and its first page a second.
The tests compare every figure with theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import erf, erfc, exp, inf, log, log1p, pi, sqrt
from statistics import NormalDist
from typing import NamedTuple

FEWEST_RUNS = 6
"""Fewest runs in which a change is searched."""
ALPHA = 0.02
"""How often a stable series of rates shows a change at most, over all its splits; simulated, 0.2 to 2 %."""
STEPS_APART = 20
"""Differences for each further one that may be a step, beside the first."""
FEWEST_BETWEEN = 2
"""Fewest runs between two changes of a mean, so that one unusual run is none."""


class ChangePoint(NamedTuple):
    """A change before the run at a position."""

    at: int
    """Position of the first run after the change."""
    before: float
    """Level from the previous change to this one."""
    after: float
    """Level from this change to the next one."""


def rate_changes(
    passed: Sequence[int], trials: Sequence[int], *, alpha: float = ALPHA
) -> tuple[ChangePoint, ...]:
    """Return the changes of a rate over runs, oldest first; none for fewer than six runs.

    Scans every split by the likelihood ratio of two rates against one (Worsley 1983, Biometrika 70), corrected for the
    number of splits by Bonferroni, and repeats on both sides of a change (Scott and Knott 1974). A ratio counts by how
    much more the runs vary than their trials explain, because a model may drift from run to run.

    Takes passed trials and trials of each run. Raises `ValueError` if they are not counts of the same runs.
    """
    if len(passed) != len(trials) or any(not 0 <= k <= n for k, n in zip(passed, trials, strict=False)):
        raise ValueError("Passed trials must be between 0 and the trials of the same run.")
    if len(trials) < FEWEST_RUNS:
        return ()
    k, n = _sums(passed), _sums(trials)
    spread = _spread([(int(each), of) for each, of in zip(passed, trials, strict=True) if of])
    splits = sorted(_splits(k, n, 0, len(trials), alpha / (len(trials) - 1), spread))
    return _levels(k, n, splits)


def mean_changes(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """Return the changes of a mean over runs, oldest first; none for fewer than six runs.

    The segmentation that minimises squared distances from each segment's mean plus `3 log n` noise variances for each
    change: the optimum that PELT finds (Killick, Fearnhead and Eckley 2012), by dynamic programming (Jackson et al.
    2005). The noise is estimated from successive differences (von Neumann 1941), which a step hardly widens.
    """
    if len(values) < FEWEST_RUNS:
        return ()
    noise = _noise_variance(values)
    if not noise:
        return ()
    center = values[0]
    sums = _sums([value - center for value in values])
    splits = _segments(sums, 3 * log(len(values)) * noise)
    return tuple(
        ChangePoint(change.at, change.before + center, change.after + center)
        for change in _levels(sums, range(len(sums)), splits)
    )


def likelihood_ratio_p(k: int, n: int, j: int, m: int) -> float:
    """Return the p of k of n and j of m having one rate: twice the log likelihood ratio as chi-squared, 1 degree.

    Wilks 1938; the same as the G test of a table without correction. 1.0 without trials on a side.
    """
    return erfc(sqrt(_ratio(k, n, j, m) / 2))


def _ratio(k: int, n: int, j: int, m: int) -> float:
    if not n or not m:
        return 0.0
    ratio = 2 * (_log_likelihood(k, n) + _log_likelihood(j, m) - _log_likelihood(k + j, n + m))
    return max(0.0, ratio)


class _Spread(NamedTuple):
    """How much more runs vary than their trials explain, and how well that is known."""

    factor: float = 1.0
    freedom: float = inf

    def p(self, ratio: float) -> float:
        """Return the p of a likelihood ratio: as a squared Student's t, by Wallace's normal approximation (1959)."""
        squared, freedom = ratio / self.factor, self.freedom
        if freedom == inf:
            return erfc(sqrt(squared / 2))
        z = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(squared / freedom))
        return erfc(z / sqrt(2))


def _spread(runs: Sequence[tuple[int, int]]) -> _Spread:
    """Return the spread of runs, each with its passed trials and trials.

    Successive differences (von Neumann 1941) hardly see a step; those farthest apart, where a step is, are left out. The
    mean of the others is that of a chi-squared variable cut off there. It is never below 1, because trials vary.
    """
    squares = sorted(_squared_difference(*each) for each in pairwise(runs))
    cut = 1 + len(squares) // STEPS_APART
    remaining = squares[:-cut]
    if not remaining:
        return _Spread()
    share = cut / len(squares)
    limit = NormalDist().inv_cdf(1 - share / 2) ** 2
    below = erf(sqrt(limit / 2)) - sqrt(2 * limit / pi) * exp(-limit / 2)
    factor = sum(remaining) / len(remaining) * (1 - share) / below
    return _Spread(factor, len(remaining)) if factor > 1.0 else _Spread()


def _squared_difference(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return the squared difference of two rates by what trials explain of it, at least that of a quarter of a trial."""
    (k, n), (j, m) = one, other
    rate = (k + j) / (n + m)
    variance = max(rate * (1 - rate), 0.25 / (n + m)) * (1 / n + 1 / m)
    return (k / n - j / m) ** 2 / variance


def _splits(
    k: Sequence[float], n: Sequence[float], start: int, end: int, level: float, spread: _Spread
) -> Iterator[int]:
    """Yield the positions in a stretch at which the rate changed."""
    tests = (
        (
            spread.p(
                _ratio(int(k[at] - k[start]), int(n[at] - n[start]), int(k[end] - k[at]), int(n[end] - n[at]))
            ),
            at,
        )
        for at in range(start + 1, end)
    )
    p, at = min(tests, default=(1.0, start))
    if p < level:
        yield at
        yield from _splits(k, n, start, at, level, spread)
        yield from _splits(k, n, at, end, level, spread)


def _log_likelihood(k: int, n: int) -> float:
    """Return the log likelihood of k of n at its own rate, without the binomial coefficient."""
    return sum(each * log(each / n) for each in (k, n - k) if each)


def _segments(sums: Sequence[float], penalty: float) -> list[int]:
    """Return where the cheapest segmentation splits; `sums` begin with 0."""
    last = len(sums) - 1
    # The squared values themselves are the same in every segmentation, so they are left out.
    best, previous = [0.0] + [float("inf")] * last, [0] * (last + 1)
    for end in range(FEWEST_BETWEEN, last + 1):
        total = sums[end]
        best[end], previous[end] = min(
            (best[start] - (total - sums[start]) ** 2 / (end - start) + penalty, start)
            for start in range(end - FEWEST_BETWEEN + 1)
        )
    splits = []
    at = previous[last]
    while at:
        splits.append(at)
        at = previous[at]
    return splits[::-1]


def _noise_variance(values: Sequence[float]) -> float:
    squares = [(after - before) ** 2 for before, after in pairwise(values)]
    return sum(squares) / len(squares) / 2


def _sums(values: Sequence[float]) -> list[float]:
    """Return the sums before each position and after the last."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def _levels(sums: Sequence[float], counts: Sequence[float], splits: Sequence[int]) -> tuple[ChangePoint, ...]:
    ends = [0, *splits, len(sums) - 1]
    means = [
        (sums[end] - sums[start]) / ((counts[end] - counts[start]) or 1) for start, end in pairwise(ends)
    ]
    return tuple(ChangePoint(at, *means[index : index + 2]) for index, at in enumerate(splits))
