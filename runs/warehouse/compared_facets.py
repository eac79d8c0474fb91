"""The chips above the scenarios of two runs, which are their summary."""

from __future__ import annotations

from collections.abc import Callable

from runs.warehouse.compare import ComparedScenario
from runs.warehouse.run_detail import Chip, Facets

Test = Callable[[ComparedScenario], bool]
FACETS: dict[str, tuple[str, str, str, Test]] = {
    "differing": (
        "Changed",
        "",
        "",
        lambda each: each.verdict not in ("same", "unmeasured", "incomparable"),
    ),
    "regressed": ("Worse", "▼", "worse", lambda each: each.verdict == "regressed"),
    "improved": ("Better", "▲", "better", lambda each: each.verdict == "improved"),
    "unmeasured": ("Errors only", "!", "caution", lambda each: each.verdict == "unmeasured"),
    "added": ("Only in the new run", "", "", lambda each: each.verdict == "added"),
    "removed": ("Only in the base", "", "", lambda each: each.verdict == "removed"),
    "same": ("Same", "=", "muted", lambda each: each.verdict == "same"),
    "incomparable": ("Not comparable", "!", "caution", lambda each: not each.is_comparable),
}


def compared_facets(scenarios: list[ComparedScenario]) -> Facets:
    """Count the scenarios of each chip; those that would leave none are not offered."""
    counted = [
        Chip(name, label, sum(map(test, scenarios)), sign, look)
        for name, (label, sign, look, test) in FACETS.items()
    ]
    whole = Chip("", "All", len(scenarios))
    return Facets(len(scenarios), (whole, *(chip for chip in counted if chip.n)))


def left_by(scenarios: list[ComparedScenario], show: str) -> list[ComparedScenario]:
    """Return the scenarios of a chip; all of them for a chip that does not exist."""
    return [each for each in scenarios if FACETS[show][3](each)] if show in FACETS else scenarios
