"""What one measure came to in several runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunAggregate:
    """Sums over runs of a measure's number, mean and squared differences: enough for means and variances.

    Of one scenario, values are those of its trials; of whole runs, values are the means of their scenarios.
    """

    runs: int
    n: int
    """Values in all runs together."""
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
        """Return what runs with one value each come to."""
        total = sum(means)
        return cls(len(means), len(means), total, total, sum(each * each for each in means))

    def __add__(self, other: RunAggregate) -> RunAggregate:
        """Return both together; no run may be in both."""
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
        # What rounding leaves of equal means may lie below zero.
        return max(0.0, self.squares - self.means**2 / self.runs) / (self.runs - 1)
