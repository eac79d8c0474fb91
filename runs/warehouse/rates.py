"""A share of trials, with the interval that its number of trials leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evaluators.statistics import wilson

FEWEST = 3
"""Trials without which nothing is said of steadiness."""


@dataclass(frozen=True)
class Rate:
    """So many of n passed; trials that are errors are not in n."""

    passed: int
    n: int

    @property
    def share(self) -> float:
        """The share, 0 where nothing was counted (ask `n` first)."""
        return self.passed / self.n if self.n else 0.0

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval, 0 where nothing was counted."""
        return wilson(self.passed, self.n).lower

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval, 1 where nothing was counted."""
        return wilson(self.passed, self.n).upper

    def all_of(self, k: int) -> float | None:
        """The chance that k trials drawn from these all pass (pass^k, Yao et al. 2024); None below k trials."""
        return math.comb(self.passed, k) / math.comb(self.n, k) if self.n >= k else None

    @property
    def all_of_three(self) -> float | None:
        """pass^3, for templates."""
        return self.all_of(3)

    @property
    def steadiness(self) -> str:
        """`solid` where all passed, `broken` where at most a quarter did, else `flaky`; `few` below three trials."""
        if self.n < FEWEST:
            return "few"
        if self.passed == self.n:
            return "solid"
        return "broken" if self.share <= 0.25 else "flaky"
