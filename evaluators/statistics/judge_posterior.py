"""Draw what a population of judgings may look like, given people's labels of a sample.

numpy is imported where it is used, because it would double the time in which a web process starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Draws = NDArray[np.float64]
    """One number for each draw."""

DRAWS = 4_000
SEED = 2024
"""Makes equal labels give equal intervals."""
PRIOR = 0.5
"""Jeffreys' prior of each cell, in labels."""
CELLS = ((True, True), (False, True), (True, False), (False, False))
"""Answers of person and judge."""


class Stratum(NamedTuple):
    """The judgings of which a sample was drawn, and its labels."""

    size: float
    """Judgings."""
    labels: Mapping[tuple[bool, bool], float]
    """Labels by the answers of person and judge; fractions where they weigh differently."""
    answer: bool | None = None
    """The judge's answer to the question that all of them share; None where both occur."""


class Posterior(NamedTuple):
    """Draws of the population's shares by the answers of person and judge."""

    both_pass: Draws
    only_judge: Draws
    only_person: Draws
    both_fail: Draws

    @property
    def true_positive(self) -> Draws:
        return self.both_pass / (self.both_pass + self.only_person)

    @property
    def true_negative(self) -> Draws:
        return self.both_fail / (self.both_fail + self.only_judge)

    @property
    def agreement(self) -> Draws:
        return self.both_pass + self.both_fail

    @property
    def kappa(self) -> Draws:
        """Return Cohen's kappa (1960, equation 1)."""
        person, judge = self.both_pass + self.only_person, self.both_pass + self.only_judge
        chance = person * judge + (1 - person) * (1 - judge)
        return (self.agreement - chance) / (1 - chance)


def draw_population(strata: Sequence[Stratum]) -> Posterior:
    """Return draws of the whole population: in each stratum Dirichlet's posterior, times the stratum's size.

    Where all judgings of a stratum have one answer, that is the Beta posterior of *the person fails*. Raises
    `ValueError` without strata.
    """
    import numpy as np

    if not strata:
        raise ValueError("A population has at least one stratum.")
    rng = np.random.default_rng(SEED)
    whole = sum(stratum.size for stratum in strata)
    cells = np.full((DRAWS, len(CELLS)), 1e-12)
    for stratum in strata:
        known = [n for n, (_, judge) in enumerate(CELLS) if stratum.answer is None or judge == stratum.answer]
        counts = [stratum.labels.get(CELLS[n], 0.0) + PRIOR for n in known]
        cells[:, known] += rng.dirichlet(counts, DRAWS) * stratum.size / whole
    return Posterior(*cells.T)


def interval_of(draws: Draws, value: float) -> tuple[float, float]:
    """Return the central 95 % of draws, extended to the value where that lies outside."""
    import numpy as np

    lower, upper = (float(each) for each in np.quantile(draws, (0.025, 0.975)))
    return min(lower, value), max(upper, value)


def draw_rate(passed: int, total: int) -> Draws:
    """Return draws of a pass rate from the Beta posterior with Jeffreys' prior."""
    import numpy as np

    return np.random.default_rng(SEED + 1).beta(passed + PRIOR, total - passed + PRIOR, DRAWS)
