"""Intervals, quantiles and weighted means; the expected cost and time of a planned run; sums over runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist

from msgspec import Struct

Z_95 = 1.96
"""Standard deviations around the mean that contain 95 % of a normal distribution."""


class Interval(Struct, frozen=True):
    """The confidence interval of a rate, between 0 and 1."""

    lower: float
    upper: float
    center: float
    """The middle of the interval, nearer to one half than the observed rate."""


def wilson_interval(passes: float, total: float, z: float = Z_95) -> Interval:
    """Return the Wilson score interval of a rate; 0 to 1 without trials. Effective sample sizes may be fractions.

    Raises `ValueError` if `passes` is not between 0 and `total`.
    """
    if not 0 <= passes <= total:
        raise ValueError(f"{passes} of {total} is not a rate.")
    if total == 0:
        return Interval(0.0, 1.0, 0.5)
    rate, share = passes / total, z * z / total
    center = (rate + share / 2) / (1 + share)
    half = z / (1 + share) * sqrt(rate * (1 - rate) / total + share / (4 * total))
    return Interval(max(0.0, center - half), min(1.0, center + half), center)


def newcombe_interval(before: int, trials_before: int, after: int, trials_after: int) -> tuple[float, float]:
    """Return the 95 % interval of a difference of two rates, after minus before (Newcombe 1998, method 10).

    Raises `ValueError` if passes are not between 0 and their trials.
    """
    old, new = wilson_interval(before, trials_before), wilson_interval(after, trials_after)
    p, q = after / trials_after, before / trials_before
    low = p - q - sqrt((p - new.lower) ** 2 + (old.upper - q) ** 2)
    high = p - q + sqrt((new.upper - p) ** 2 + (q - old.lower) ** 2)
    return low, high


def mean_difference(rates: Sequence[tuple[int, int, int, int]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of several differences of rates, each over its own trials only.

    Takes passes and trials before, passes and trials after, of each scenario. Recovers each variance from Newcombe's
    interval (the method MOVER, Zou and Donner 2008). Raises `ValueError` without scenarios.
    """
    if not rates:
        raise ValueError("The mean difference of no scenarios has no interval.")
    below = above = mean = 0.0
    for before, trials_before, after, trials_after in rates:
        difference = after / trials_after - before / trials_before
        low, high = newcombe_interval(before, trials_before, after, trials_after)
        mean += difference / len(rates)
        below += (difference - low) ** 2
        above += (high - difference) ** 2
    return mean - sqrt(below) / len(rates), mean + sqrt(above) / len(rates)


def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution with `freedom` degrees of freedom.

    Uses the Cornish-Fisher expansion of the normal quantile (Abramowitz and Stegun 1964, 26.7.5): within 1 % of the
    exact value for probabilities from 0.025 to 0.975. Raises `ValueError` below two degrees of freedom, where the
    expansion is not valid.
    """
    if freedom < 2:
        raise ValueError(f"{freedom} degrees of freedom are too few. At least 2 are needed.")
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / float(freedom) ** power for power, term in enumerate(terms))


def weighted_mean(weighed: Iterable[tuple[float, float]]) -> float:
    """Return the weighted mean of (value, weight) pairs, 0 without a positive weight."""
    pairs = list(weighed)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total > 0 else 0.0


def pass_hat_k(passed: int, trials: int, k: int) -> float | None:
    """Return the unbiased estimate that k trials all pass; None below k trials.

    pass^k of Yao et al. 2024 (tau-bench, arXiv 2406.12045). Raises `ValueError` for k below 1.
    """
    return _chance_of_draw(passed, trials, k)


def pass_at_k(passed: int, trials: int, k: int) -> float | None:
    """Return the unbiased estimate that at least one of k trials passes; None below k trials.

    pass@k of Chen et al. 2021 (arXiv 2107.03374). Raises `ValueError` for k below 1.
    """
    failing = _chance_of_draw(trials - passed, trials, k)
    return None if failing is None else 1.0 - failing


def _chance_of_draw(chosen: int, total: int, k: int) -> float | None:
    """Return the chance that k draws without replacement are all among the chosen."""
    if k < 1:
        raise ValueError(f"k is {k}; it must be 1 or more.")
    return comb(chosen, k) / comb(total, k) if total >= k else None


MOST_PRIOR = 1_000.0
"""The largest weight of the pooled rate, where the rates vary less than chance alone would let them."""


def shrunken_rates(counts: Sequence[tuple[int, int]]) -> list[float]:
    """Return each rate drawn towards the pooled one, the more the fewer trials it has (empirical Bayes).

    Takes hits and trials of each group. The beta-binomial prior is estimated by the method of moments (Kleinman 1973,
    JASA 68): its weight in trials is 1 / rho - 1, with rho the correlation within groups. Groups without trials get the
    pooled rate; with one group there is nothing to learn from, so its rate stays.
    """
    known = [(hits, n) for hits, n in counts if n]
    total = sum(n for _, n in known)
    if not total:
        return [0.0 for _ in counts]
    pooled = sum(hits for hits, _ in known) / total
    if len(known) < 2 or pooled in (0.0, 1.0):
        return [hits / n if n else pooled for hits, n in counts]
    spread = sum(n * (hits / n - pooled) ** 2 for hits, n in known)
    groups = len(known) - 1
    room = total - sum(n * n for _, n in known) / total - groups
    rho = (spread - pooled * (1 - pooled) * groups) / (pooled * (1 - pooled) * room) if room > 0 else 0.0
    weight = min(MOST_PRIOR, 1 / rho - 1) if rho > 0 else MOST_PRIOR
    weight = max(0.0, weight)
    return [(hits + weight * pooled) / (n + weight) if n + weight else pooled for hits, n in counts]


@dataclass(frozen=True)
class Estimate:
    """An expected total, in the unit of its measure."""

    expected: float
    half: float | None = None
    """Half the width of the 95 % prediction interval; None with too few runs."""

    @property
    def low(self) -> float | None:
        """The lower end of the interval, never below 0."""
        return None if self.half is None else max(0.0, self.expected - self.half)

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""
        return None if self.half is None else self.expected + self.half

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate times a factor."""
        return Estimate(self.expected * factor, None if self.half is None else self.half * factor)


def estimate_total(scenarios: Sequence[RunAggregate | None], whole: RunAggregate, trials: int) -> Estimate:
    """Return the total of a measure over `trials` trials of each scenario.

    `scenarios` are the planned ones; None is an unknown scenario, which gets the mean of the others. `whole` is
    the suite in the same runs. The interval is a prediction interval for one more run (normal distribution, Hahn
    and Meeker 1991, chapter 4). The variance of a run's mean is the variance between runs plus that of its trials,
    separated by the method of moments (one-way random effects, Searle, Casella and McCulloch 1992, chapter 3), so
    more trials reduce only the part that trials cause.
    """
    known = [each for each in scenarios if each is not None and each.n]
    typical = sum(each.mean for each in known) / len(known) if known else whole.mean_of_runs
    unknown = len(scenarios) - len(known)
    expected = trials * (sum(each.mean for each in known) + unknown * typical)
    share = _half_share(known, whole, len(scenarios) * trials)
    return Estimate(expected, None if share is None else expected * share)


def sum_of_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """Return the sum of independent estimates."""
    parts = list(estimates)
    halves = [each.half for each in parts if each.half is not None]
    whole = len(halves) == len(parts)
    return Estimate(
        sum(each.expected for each in parts), sqrt(sum(half * half for half in halves)) if whole else None
    )


def _half_share(known: Sequence[RunAggregate], whole: RunAggregate, planned: int) -> float | None:
    """Return half of the interval as a share of the total, for `planned` trials."""
    between = whole.between
    # The fewest runs that give an interval.
    if between is None or whole.runs < 3 or whole.mean_of_runs <= 0:
        return None
    variance = _variance_of_next_run(between, known, whole, planned) + between / whole.runs
    return student_quantile(0.975, whole.runs - 1) * sqrt(variance) / whole.mean_of_runs


def _variance_of_next_run(
    between: float, known: Sequence[RunAggregate], whole: RunAggregate, planned: int
) -> float:
    """Return the variance of the mean of one more run of `planned` trials."""
    freedom = sum(each.freedom for each in known)
    if not freedom:
        # One trial per scenario cannot separate trials from runs: keep the larger variance.
        return between
    noise = sum(each.within for each in known) / freedom
    trials_each = sum(each.n for each in known) / sum(each.runs for each in known)
    scenarios = whole.n / whole.runs
    return max(0.0, between - noise / (scenarios * trials_each)) + noise / planned


@dataclass(frozen=True)
class RunAggregate:
    """Sums of a measure over runs, enough for means and variances.

    For a scenario the values are its trials; for whole runs they are the means of the scenarios.
    """

    runs: int
    n: int
    """The number of values in all runs."""
    total: float
    """Sum of all values."""
    means: float
    """Sum of the runs' means."""
    squares: float
    """Sum of the squares of the runs' means."""
    within: float = 0.0
    """Sum of squared differences between each value and the mean of its run."""

    @classmethod
    def of(cls, means: list[float]) -> RunAggregate:
        """Return the aggregate of runs with one value each."""
        total = sum(means)
        return cls(len(means), len(means), total, total, sum(each * each for each in means))

    def __add__(self, other: RunAggregate) -> RunAggregate:
        """Return the aggregate of both; no run may be in both."""
        return RunAggregate(
            self.runs + other.runs,
            self.n + other.n,
            self.total + other.total,
            self.means + other.means,
            self.squares + other.squares,
            self.within + other.within,
        )

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return self.total / self.n

    @property
    def mean_of_runs(self) -> float:
        """The mean of the runs' means."""
        return self.means / self.runs

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the variance within runs."""
        return self.n - self.runs

    @property
    def between(self) -> float | None:
        """The variance of the runs' means, None with fewer than two runs."""
        if self.runs < 2:
            return None
        # Rounding can make the variance of equal means slightly negative.
        return max(0.0, self.squares - self.means**2 / self.runs) / (self.runs - 1)
