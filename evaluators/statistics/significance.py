"""Exact and permutation tests of two samples, their corrections, and sizes of effects.

numpy and scipy are imported where they are used, because they would double the time in which a web process starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, exp, lcm, log, prod, sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS = 9_999
_TOLERANCE = 1e-9
"""Two statistics closer than this are equal, because sums of floats depend on their order."""


def _extreme(sums: NDArray[np.floating], observed: float) -> int:
    """Return how many sums are at least as extreme as the observed one."""
    import numpy as np

    slack = _TOLERANCE * max(1.0, abs(observed))
    return int(np.count_nonzero(np.abs(sums) >= abs(observed) - slack))


class Arms:
    """The passes of one scenario in both arms.

    Raises `ValueError` if an arm has no trials or more passes than trials.
    """

    __slots__ = ("after", "before", "trials_after", "trials_before")

    def __init__(self, before: int, trials_before: int, after: int, trials_after: int) -> None:
        for passes, trials in ((before, trials_before), (after, trials_after)):
            if trials < 1 or not 0 <= passes <= trials:
                raise ValueError(f"{passes} of {trials} trials is not a rate.")
        self.before, self.trials_before = before, trials_before
        self.after, self.trials_after = after, trials_after

    @property
    def difference(self) -> float:
        """The pass rate after minus the one before."""
        return self.after / self.trials_after - self.before / self.trials_before

    @property
    def variance(self) -> float:
        """The variance of `difference` when trials are permuted between the arms (hypergeometric distribution)."""
        a, b = self.trials_before, self.trials_after
        passes, n = self.before + self.after, a + b
        return passes * (n - passes) * n / (n - 1) / (a * b) / n


def within_scenario_p(scenarios: Sequence[Arms], *, mid: bool = False) -> float:
    """Return the p of the mean difference by permuting trials between the arms within each scenario.

    The passes of the second arm then follow the hypergeometric distribution (Fisher 1935), and the sum over
    scenarios its convolution, counted exactly. Tests these scenarios only, because nothing varies between them.
    Where trial counts differ so much that the exact distribution is too long, `DRAWS` permutations are drawn.
    With `mid`, results as extreme as the observed one count half (mid-p, Lancaster 1961): few trials have few results,
    which makes the exact p too large.
    """
    import numpy as np

    if not scenarios:
        return 1.0
    scale = lcm(*(n for arms in scenarios for n in (arms.trials_before, arms.trials_after)))
    # The most points of an exact distribution; above it, permutations are drawn.
    if 2 * scale * len(scenarios) > 200_000:
        return _drawn_within_p(scenarios, mid=mid)
    distribution, lowest, observed = np.ones(1), 0, 0
    for arms in scenarios:
        steps, chances = _hypergeometric(arms, scale)
        one = np.zeros(steps[-1] - steps[0] + 1)
        one[np.array(steps) - steps[0]] = chances
        distribution, lowest = np.convolve(distribution, one), lowest + steps[0]
        observed += _step(arms, arms.after, scale)
    sums = np.arange(distribution.size) + lowest
    far, equal = np.abs(sums) >= abs(observed), np.abs(sums) == abs(observed)
    p = float(distribution[far].sum())
    return min(1.0, p - (float(distribution[equal].sum()) / 2 if mid else 0.0))


def _hypergeometric(arms: Arms, scale: int) -> tuple[list[int], list[float]]:
    """Return the possible differences times `scale`, and the probability of each."""
    a, b = arms.trials_before, arms.trials_after
    passes = arms.before + arms.after
    possible = range(max(0, passes - a), min(b, passes) + 1)
    chances = [comb(b, k) * comb(a, passes - k) / comb(a + b, passes) for k in possible]
    return [_step(arms, k, scale) for k in possible], chances


def _step(arms: Arms, after: int, scale: int) -> int:
    """Return the difference times `scale` when `after` of the scenario's passes are in the second arm."""
    before = arms.before + arms.after - after
    return after * (scale // arms.trials_after) - before * (scale // arms.trials_before)


def _drawn_within_p(scenarios: Sequence[Arms], *, mid: bool) -> float:
    import numpy as np

    # Makes equal data give equal p.
    generator = np.random.default_rng(2024)
    sums = np.zeros(DRAWS)
    for arms in scenarios:
        passes, n = arms.before + arms.after, arms.trials_before + arms.trials_after
        after = generator.hypergeometric(passes, n - passes, arms.trials_after, DRAWS)
        sums += after / arms.trials_after - (passes - after) / arms.trials_before
    observed = sum(arms.difference for arms in scenarios)
    far = _extreme(sums, observed) + 1.0
    if mid:
        slack = _TOLERANCE * max(1.0, abs(observed))
        off = np.abs(np.abs(sums) - abs(observed))
        far -= (int(np.count_nonzero(off <= slack)) + 1) / 2
    return far / (DRAWS + 1)


class Values(NamedTuple):
    """The values of one scenario in both arms: number, mean and sum of squared differences from the mean."""

    n_before: int
    mean_before: float
    m2_before: float
    n_after: int
    mean_after: float
    m2_after: float

    @property
    def permuted_variance(self) -> float:
        """The variance of the difference of means when values are permuted between the arms."""
        n = self.n_before + self.n_after
        apart = (self.mean_after - self.mean_before) ** 2 * self.n_before * self.n_after / n
        return (self.m2_before + self.m2_after + apart) / (n - 1) * (1 / self.n_before + 1 / self.n_after)


def within_moments_p(scenarios: Sequence[Values]) -> float:
    """Return the p of the mean difference of values by permuting trials between the arms within each scenario.

    The distribution over all permutations is not counted, but approximated by Student's t with its exact mean and
    variance (Pitman 1937), so that counts, means and variances are enough. Returns 1 where nothing varies, and never
    less than the most extreme permutations have: one, or two where every scenario has equal numbers in both arms.
    """
    from scipy.special import stdtr

    variance = sum(each.permuted_variance for each in scenarios)
    difference = sum(each.mean_after - each.mean_before for each in scenarios)
    freedom = sum(each.n_before + each.n_after for each in scenarios) - len(scenarios) - 1
    if variance <= 0.0 or freedom < 1:
        return 1.0
    squared = difference**2 / variance
    left = freedom + 1 - squared
    # Where every value of one arm is equal, and differs from every one of the other.
    t = sqrt(squared * freedom / left) if left > _TOLERANCE else 1e6
    lower = float(stdtr(freedom, -t if difference < 0 else t))
    is_even = all(each.n_before == each.n_after for each in scenarios)
    arrangements = prod(comb(each.n_before + each.n_after, each.n_after) for each in scenarios)
    least = (2 if is_even else 1) / arrangements
    return max(least, 2 * min(lower, 1 - lower))


_BOSCHLOO_TABLES = 40_000
"""Of 200 trials in both arms, 0.2 s; those of 1,000 take 15 s."""


def boschloo_p(arms: Arms) -> float:
    """Return the p of one scenario's two pass rates (Boschloo 1970), twice the smaller one-sided one.

    Of more than `_BOSCHLOO_TABLES` tables it is Fisher's exact p, a little larger: Boschloo's takes seconds.
    """
    # scipy returns nan where all or none passed.
    if arms.difference == 0.0:
        return 1.0
    if abs(arms.difference) == 1.0:
        return _boschloo_apart(arms)
    if arms.trials_after * arms.trials_before > _BOSCHLOO_TABLES:
        return within_scenario_p([arms])
    return _boschloo_exact(arms.after, arms.trials_after, arms.before, arms.trials_before)


def _boschloo_apart(arms: Arms) -> float:
    """Return Boschloo's p where all trials of one arm passed and none of the other: no other table is as extreme.

    Its chance is the highest where the common rate is the share of the arm that passed. Needs no scipy, whose import
    takes longer than a trial.
    """
    n, m = arms.trials_before, arms.trials_after
    return min(1.0, 2 * exp(n * log(n / (n + m)) + m * log(m / (n + m))))


@lru_cache(maxsize=4096)
def _boschloo_exact(after: int, trials_after: int, before: int, trials_before: int) -> float:
    from scipy.stats import boschloo_exact

    table = [[after, before], [trials_after - after, trials_before - before]]
    return float(boschloo_exact(table, "two-sided").pvalue)


def adjust_holm(ps: Sequence[float]) -> list[float]:
    """Return the p of several tests corrected so that any false alarm among them is as rare as one (Holm 1979)."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        corrected[index] = highest
    return corrected


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return the p of many tests corrected for the share of false discoveries (Benjamini and Hochberg 1995)."""
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    corrected, lowest = [0.0] * len(ps), 1.0
    for rank, index in enumerate(order):
        lowest = min(lowest, ps[index] * len(ps) / (len(ps) - rank))
        corrected[index] = lowest
    return corrected


def t_interval(
    differences: Sequence[float], confidence: float, least_variance: float = 0.0
) -> tuple[float, float]:
    """Return Student's interval of the mean of paired differences (Miller 2024, section 4.2).

    `least_variance` is the lowest variance of the mean, for data that vary less than trials can. Raises
    `ValueError` below two differences.
    """
    mean, error = mean_and_error(differences, least_variance)
    half = t_quantile((1 + confidence) / 2, len(differences) - 1) * error
    return mean - half, mean + half


def mean_and_error(differences: Sequence[float], least_variance: float = 0.0) -> tuple[float, float]:
    """Return the mean and its standard error. Raises `ValueError` below two differences."""
    n = len(differences)
    if n < 2:
        raise ValueError(f"{n} differences are too few for an interval. At least 2 are needed.")
    mean = sum(differences) / n
    variance = sum((each - mean) ** 2 for each in differences) / (n - 1) / n
    return mean, sqrt(max(variance, least_variance))


def student_p(effect: float, error: float, freedom: int) -> float:
    """Return the two-sided p of an effect by its standard error (Student 1908); an error of 0 proves any effect."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(effect) / max(error, _TOLERANCE)))


def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def jeffreys_variance(passes: float, trials: int) -> float:
    """Return the expected variance of one trial, never 0, because no scenario is certain (Jeffreys' prior)."""
    a, b = passes + 0.5, trials - passes + 0.5
    return a * b / ((a + b) * (a + b + 1))
