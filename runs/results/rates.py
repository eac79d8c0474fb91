"""Compute a share of trials with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass

from evaluators.statistics.descriptive import pass_at_k, pass_hat_k, wilson
from runs.models import Run


@dataclass(frozen=True)
class Rate:
    """Passed trials out of n, without errors."""

    passed: int
    n: int

    @property
    def share(self) -> float:
        """Return the share, 0 if n is 0 (check `n` first)."""
        return self.passed / self.n if self.n else 0.0

    @property
    def low(self) -> float:
        """Return the lower end of the 95 % interval, 0 if n is 0."""
        return wilson(self.passed, self.n).lower

    @property
    def high(self) -> float:
        """Return the upper end of the 95 % interval, 1 if n is 0."""
        return wilson(self.passed, self.n).upper

    def all_of(self, k: int) -> float | None:
        """Return pass^k, the chance that k trials drawn from these all pass; None below k trials."""
        return pass_hat_k(self.passed, self.n, k)

    def any_of(self, k: int) -> float | None:
        """Return pass@k, the chance that at least one of k trials drawn from these passes; None below k trials."""
        return pass_at_k(self.passed, self.n, k)


def rates_of(*runs: Run) -> list[tuple[Run, Rate]]:
    """Return runs with their pass rates over all scenarios."""
    return [(run, Rate(run.passed, run.passed + run.failed)) for run in runs]
