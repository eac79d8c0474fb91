"""Split the variance of a run's measures between scenarios, agent and judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from evaluators.statistics import VarianceSplit, variance_split
from runs.warehouse.layer_totals import ReadScore

MEASURES = (
    ("trial", "pass"),
    ("judge", "judge"),
    ("interaction", "first_try_success_rate"),
    ("interaction", "error_rate"),
)
"""The headline measures, in the order of the page."""
_JUDGING = ("judge", "judging")


class MeasureVariance(Struct, frozen=True):
    """A measure's variance by its cause."""

    measure: str
    split: VarianceSplit


def variance_json(measured: Sequence[MeasureVariance] | None) -> list[dict[str, Any]]:
    """Return each measure's variance by its cause, null where nothing was repeated that would separate it."""
    return [
        {
            "measure": each.measure,
            "scenario_mix": each.split.mix,
            "agent": each.split.agent,
            "judge": each.split.judge,
            "negative_estimates": ["scenario_mix" if name == "mix" else name for name in each.split.clipped],
        }
        for each in measured or ()
    ]


class TrialValues(NamedTuple):
    """The parts of a trial that have a variance."""

    scenario: int
    passed: bool
    scores: Sequence[ReadScore]

    def of(self, measure: tuple[str, str]) -> list[float]:
        """Return the trial's values of a measure: of the judge's score one for each judging."""
        if measure == ("trial", "pass"):
            return [float(self.passed)]
        judgings = self._values(_JUDGING) if measure == ("judge", "judge") else []
        return judgings or self._values(measure)

    def _values(self, measure: tuple[str, str]) -> list[float]:
        return [
            each.value
            for each in self.scores
            if (each.layer, each.name) == measure and each.value is not None
        ]


def variances(trials: Sequence[TrialValues]) -> list[MeasureVariance]:
    """Return the variance of each headline measure that these trials have."""
    found = []
    for measure in MEASURES:
        by_scenario: defaultdict[int, list[list[float]]] = defaultdict(list)
        for trial in trials:
            if values := trial.of(measure):
                by_scenario[trial.scenario].append(values)
        if by_scenario:
            split = variance_split(list(by_scenario.values()))
            found.append(MeasureVariance("/".join(measure), split))
    return found
