"""Say where a run's variance comes from, and what to repeat."""

from __future__ import annotations

from collections.abc import Sequence

from evalhub.web.csv_export import Table
from runs.models import Run
from runs.results.measures import label_of_key
from runs.results.variance import MeasureVariance, variance_json

ADVICE = {
    "judge": "is the judge: judge three times before adding trials.",
    "agent": "is the agent: more trials narrow the result most.",
    "mix": "lies between scenarios: comparisons pair scenarios, so only more scenarios narrow the mean.",
}
NO_REPEATS = "Each scenario has one trial. Run 2 or more to separate the agent from the scenario mix."
COLUMNS = ("measure", "scenario_mix", "agent", "judge", "negative_estimates")


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
