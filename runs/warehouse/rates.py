"""Compute a share of trials with its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evaluators.statistics import wilson

FEWEST = 3
"""Fewest trials for a steadiness class."""


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
        """Return the chance that k trials drawn from these all pass (pass^k, Yao et al. 2024); None below k."""
        return math.comb(self.passed, k) / math.comb(self.n, k) if self.n >= k else None

    @property
    def all_of_three(self) -> float | None:
        """Return pass^3, for templates."""
        return self.all_of(3)

    @property
    def steadiness(self) -> str:
        """Return `solid` if all passed, `broken` if at most a quarter did, else `flaky`; `few` below three trials."""
        if self.n < FEWEST:
            return "few"
        if self.passed == self.n:
            return "solid"
        return "broken" if self.share <= 0.25 else "flaky"
