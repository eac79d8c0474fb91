"""A share of trials, with the interval that its number of trials leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass

Z = 1.959964
"""Of the normal distribution, for 95 %."""


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
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval (Wilson 1927, score interval); all of 0 to 1 where nothing was counted."""
        if not self.n:
            return 0.0, 1.0
        share, z2 = self.share, Z * Z
        middle = (share + z2 / (2 * self.n)) / (1 + z2 / self.n)
        half = Z / (1 + z2 / self.n) * math.sqrt(share * (1 - share) / self.n + z2 / (4 * self.n**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def low(self) -> float:
        return self.bounds[0]

    @property
    def high(self) -> float:
        return self.bounds[1]

    def all_of(self, k: int) -> float | None:
        """The chance that k trials drawn from these all pass (pass^k, Yao et al. 2024); None below k trials."""
        return math.comb(self.passed, k) / math.comb(self.n, k) if self.n >= k else None

    @property
    def all_of_three(self) -> float | None:
        return self.all_of(3)

    @property
    def steadiness(self) -> str:
        """`solid` where all of at least three passed, `broken` where at most a quarter did, else `flaky`; `new` at none."""
        if not self.n:
            return "new"
        if self.passed == self.n:
            return "solid"
        return "broken" if self.share <= 0.25 else "flaky"
