"""Sums of one measure over several runs."""

from __future__ import annotations

from dataclasses import dataclass


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
