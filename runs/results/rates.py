"""Compute a share of trials, or a run's pass rate, with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from evaluators.statistics.descriptive import pass_at_k, pass_hat_k, wilson
from runs.models import Run


@dataclass(frozen=True)
class Rate:
    """Passed trials out of n, without errors."""

    passed: int
    n: int
    mean: float | None = None
    """Of several scenarios: the mean of their rates, which is their rate; None for the share of all trials."""

    @property
    def share(self) -> float:
        """Return the rate, 0 if n is 0 (check `n` first)."""
        if self.mean is not None:
            return self.mean
        return self.passed / self.n if self.n else 0.0

    @property
    def low(self) -> float:
        """Return the lower end of the 95 % interval, 0 if n is 0."""
        return wilson(self.share * self.n, self.n).lower

    @property
    def high(self) -> float:
        """Return the upper end of the 95 % interval, 1 if n is 0."""
        return wilson(self.share * self.n, self.n).upper

    def change_from(self, before: Rate) -> str:
        """Return worse, better or same, by counts and without a test; empty if either has no trials."""
        if not (before.n and self.n):
            return ""
        if before.share == self.share:
            return "same"
        return "worse" if self.share < before.share else "better"

    def all_of(self, k: int) -> float | None:
        """Return pass^k, the chance that k trials drawn from these all pass; None below k trials."""
        return pass_hat_k(self.passed, self.n, k)

    def any_of(self, k: int) -> float | None:
        """Return pass@k, the chance that at least one of k trials drawn from these passes; None below k trials."""
        return pass_at_k(self.passed, self.n, k)


class CountedRun(Protocol):
    """A run's totals, of a model or a row."""

    @property
    def passed(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def pass_rate(self) -> float | None: ...


def run_rate(run: CountedRun) -> Rate:
    """Return a run's pass rate: the mean over its scenarios, of an open run the share of its trials so far."""
    return Rate(run.passed, run.passed + run.failed, run.pass_rate)


def rates_of(*runs: Run) -> list[tuple[Run, Rate]]:
    """Return runs with their pass rates."""
    return [(run, run_rate(run)) for run in runs]
