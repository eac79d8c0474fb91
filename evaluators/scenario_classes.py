"""Classify a scenario by its recent trials on one target."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

FEWEST = 3
"""Fewest trials for a class other than `new`."""
LEAST_BLOCK = 2
"""Fewest equal outcomes on each side of a change that explains them."""
BROKEN_SHARE = 0.25
"""A scenario that passes at most this often is broken."""
GAP = "gap"
"""Stands between trials before and after a change of guidance or tool."""


class ScenarioClass(StrEnum):
    """How a scenario's recent trials came out."""

    SOLID = "solid"
    FIXED = "fixed"
    FLAKY = "flaky"
    BROKEN = "broken"
    NEW = "new"


def classify(outcomes: Sequence[str]) -> ScenarioClass:
    """Return the class of a scenario from its outcomes in order; `gap` marks new guidance or a new tool.

    Outcomes that switch only at gaps are explained by them: the scenario is fixed or broken, not flaky.
    """
    counted = [each for each in outcomes if each in ("pass", "fail")]
    passed = counted.count("pass")
    if len(counted) < FEWEST:
        return ScenarioClass.NEW
    if passed == len(counted):
        return ScenarioClass.SOLID
    if passed and _switches_at_gaps(outcomes):
        return ScenarioClass.FIXED if counted[-1] == "pass" else ScenarioClass.BROKEN
    return ScenarioClass.BROKEN if passed <= BROKEN_SHARE * len(counted) else ScenarioClass.FLAKY


def _switches_at_gaps(outcomes: Sequence[str]) -> bool:
    """Return whether every switch of outcome falls on a gap, with enough equal outcomes on each side."""
    last, length, after_gap = "", 0, False
    for each in outcomes:
        if each == GAP:
            after_gap = True
        elif each in ("pass", "fail"):
            if last and each != last and (not after_gap or length < LEAST_BLOCK):
                return False
            length = length + 1 if each == last else 1
            last, after_gap = each, False
    return length >= LEAST_BLOCK
