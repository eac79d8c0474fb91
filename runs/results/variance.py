"""Split the variance of a run's measures between scenarios, agent and judge, and say what to repeat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from evalhub.web.csv_export import Table
from evaluators.statistics.descriptive import VarianceSplit, variance_split
from runs.models import Run
from runs.results.layer_totals import ReadScore
from runs.results.measures import label_of_key

MEASURES = (
    ("trial", "pass"),
    ("judge", "judge"),
    ("interaction", "first_try_success_rate"),
    ("interaction", "error_rate"),
)
"""The headline measures, in the order of the page."""
_JUDGING = ("judge", "judging")
_READ = frozenset((*MEASURES[1:], _JUDGING))

ADVICE = {
    "judge": "is the judge: judge three times before adding trials.",
    "agent": "is the agent: more trials narrow the result most.",
    "mix": "lies between scenarios: comparisons pair scenarios, so only more scenarios narrow the mean.",
}
NO_REPEATS = "Each scenario has one trial. Run 2 or more to separate the agent from the scenario mix."
COLUMNS = ("measure", "scenario_mix", "agent", "judge", "negative_estimates")


class MeasureVariance(Struct, frozen=True):
    """A measure's variance by its cause."""

    measure: str
    split: VarianceSplit


def variance_json(measured: Sequence[MeasureVariance] | None) -> list[dict[str, Any]]:
    """Return each measure's variance by its cause, null where nothing was repeated that would separate it."""
    return [
        {
            "measure": measure.measure,
            "scenario_mix": measure.split.mix,
            "agent": measure.split.agent,
            "judge": measure.split.judge,
            "negative_estimates": [
                "scenario_mix" if name == "mix" else name for name in measure.split.clipped
            ],
        }
        for measure in measured or ()
    ]


class TrialValues(NamedTuple):
    """The parts of a trial that have a variance."""

    scenario: int
    passed: bool
    scores: Sequence[ReadScore]

    def by_measure(self) -> dict[tuple[str, str], list[float]]:
        """Return the trial's values of the headline measures: of the judge's score one for each judging."""
        values: dict[tuple[str, str], list[float]] = {("trial", "pass"): [float(self.passed)]}
        for score in self.scores:
            key = score.layer, score.name
            if key in _READ and score.value is not None:
                values.setdefault(key, []).append(score.value)
        if judgings := values.pop(_JUDGING, None):
            values["judge", "judge"] = judgings
        return values


def variances(trials: Sequence[TrialValues]) -> list[MeasureVariance]:
    """Return the variance of each headline measure that these trials have."""
    by_measure: dict[tuple[str, str], defaultdict[int, list[list[float]]]] = {}
    for trial in trials:
        for measure, values in trial.by_measure().items():
            by_measure.setdefault(measure, defaultdict(list))[trial.scenario].append(values)
    return [
        MeasureVariance("/".join(measure), variance_split(list(by_measure[measure].values())))
        for measure in MEASURES
        if measure in by_measure
    ]


def variance_sentence(measured: Sequence[MeasureVariance]) -> str:
    """Return where most of the variance comes from, of the first measure that varies; empty if none does."""
    if measured and all(each.split.agent is None for each in measured):
        return NO_REPEATS
    return next(filter(None, map(_sentence, measured)), "")


def _sentence(measured: MeasureVariance) -> str:
    parts = {name: value for name in ADVICE if (value := getattr(measured.split, name)) is not None}
    total = sum(parts.values())
    if measured.split.agent is None or not total:
        return ""
    top = max(parts, key=lambda name: parts[name])
    return f"{label_of_key(measured.measure)}: {parts[top] / total * 100:.0f} % of the variance {ADVICE[top]}"


def variance_table(run: Run, measured: Sequence[MeasureVariance] | None) -> Table:
    """Return each measure's variance by its cause; empty where nothing was repeated that would separate it."""
    rows = (
        (*(row[name] for name in COLUMNS[:-1]), " ".join(row[COLUMNS[-1]])) for row in variance_json(measured)
    )
    return Table(f"run-{run.pk}-variance", COLUMNS, rows)
