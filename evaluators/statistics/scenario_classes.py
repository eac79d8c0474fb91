"""Classify a scenario by its recent trials on one target."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from math import asin, exp, lgamma, log, pi, sqrt
from typing import NamedTuple

LEAST_BLOCK = 2
"""Fewest equal outcomes on each side of a change that explains them."""
BROKEN_SHARE = 0.25
"""A scenario that passes at most this often is broken."""
SOLID_RATE = 0.9
"""A solid scenario's true pass rate is at least this."""
LEAST_PROBABILITY = 0.8
"""Below it, there are too few trials for a class."""
GAP = "gap"
"""Stands between trials before and after a change of guidance or tool."""


class ScenarioClass(StrEnum):
    """How a scenario's recent trials came out."""

    SOLID = "solid"
    FIXED = "fixed"
    FLAKY = "flaky"
    BROKEN = "broken"
    NEW = "new"


class ClassEvidence(NamedTuple):
    """What a class rests on."""

    n: int
    """Trials without errors that count for it: those since the last change for what a change explains, else all."""
    probability: float | None
    """That the true pass rate is in the class's range; None without enough trials for any class."""

    @property
    def is_enough(self) -> bool:
        return self.probability is not None and self.probability >= LEAST_PROBABILITY

    @property
    def text(self) -> str:
        """Return the probability with its n, or that there are too few trials."""
        if self.probability is None or not self.is_enough:
            return f"too few trials, n = {self.n}"
        return f"{min(99, int(self.probability * 100))} % sure, n = {self.n}"


def class_probability(outcomes: Sequence[str]) -> ClassEvidence:
    """Return the probability of the class that `classify` gives the outcomes.

    The posterior of the true pass rate with Jeffreys' prior: at least 0.9 for solid and fixed, at most 0.25 for broken,
    between them for flaky.
    """
    kind = classify(outcomes)
    counted = [each for each in outcomes if each in ("pass", "fail")]
    if kind is ScenarioClass.NEW:
        return ClassEvidence(len(counted), None)
    if "pass" in counted and "fail" in counted and _switches_at_gaps(outcomes):
        since = len(counted) - next(n for n, each in enumerate(counted[::-1]) if each != counted[-1])
        counted = counted[since:]
    passed, failed = counted.count("pass"), counted.count("fail")
    broken, solid = (beta_cdf(rate, passed, failed) for rate in (BROKEN_SHARE, SOLID_RATE))
    chance = {ScenarioClass.BROKEN: broken, ScenarioClass.FLAKY: solid - broken}.get(kind, 1 - solid)
    return ClassEvidence(len(counted), min(1.0, max(0.0, chance)))


@lru_cache(maxsize=4096)
def beta_cdf(rate: float, passed: int, failed: int) -> float:
    """Return the probability that the true rate is at most `rate`, with Jeffreys' prior; `rate` is between 0 and 1.

    The regularized incomplete beta function by its recurrences (DLMF 8.17.20 and 8.17.21), from I(1/2, 1/2).
    """
    value = 2 / pi * asin(sqrt(rate))
    a = b = 0.5
    for _ in range(passed):
        value -= exp(_log_term(rate, a, b) - log(a))
        a += 1
    for _ in range(failed):
        value += exp(_log_term(rate, a, b) - log(b))
        b += 1
    return value


def _log_term(rate: float, a: float, b: float) -> float:
    """Return the logarithm of rate^a (1 - rate)^b / B(a, b)."""
    return a * log(rate) + b * log(1 - rate) + lgamma(a + b) - lgamma(a) - lgamma(b)


def classify(outcomes: Sequence[str]) -> ScenarioClass:
    """Return the class of a scenario from its outcomes in order; `gap` marks new guidance or a new tool.

    Outcomes that switch only at gaps are explained by them: the scenario is fixed or broken, not flaky.
    """
    counted = [each for each in outcomes if each in ("pass", "fail")]
    passed = counted.count("pass")
    # Fewest trials for a class other than `new`.
    if len(counted) < 3:
        return ScenarioClass.NEW
    if passed == len(counted):
        return ScenarioClass.SOLID
    if passed and _switches_at_gaps(outcomes):
        return ScenarioClass.FIXED if counted[-1] == "pass" else ScenarioClass.BROKEN
    return ScenarioClass.BROKEN if passed <= BROKEN_SHARE * len(counted) else ScenarioClass.FLAKY


def _switches_at_gaps(outcomes: Sequence[str]) -> bool:
    """Return whether every switch of outcome falls on a gap, with enough equal outcomes on each side."""
    last, length, after_gap = "", 0, False
    for outcome in outcomes:
        if outcome == GAP:
            after_gap = True
        elif outcome in ("pass", "fail"):
            if last and outcome != last and (not after_gap or length < LEAST_BLOCK):
                return False
            length = length + 1 if outcome == last else 1
            last, after_gap = outcome, False
    return length >= LEAST_BLOCK
