"""Read judges' statements on a suite's runs, by guidance."""

from __future__ import annotations

from dataclasses import dataclass

from runs.models import Run
from runs.warehouse.repeated_statements import Statement, statements
from scenarios.models import Suite

MOST_RUNS = 50


@dataclass(frozen=True)
class Reading:
    """Judges' statements on the runs with one guidance."""

    guidance: str
    runs: int
    judged: int
    issues: list[Statement]
    highlights: list[Statement]


def readings(suite: Suite) -> list[Reading]:
    """Return the statements on a suite's recent runs by guidance, newest first. One query, plus one per guidance."""
    runs = Run.objects.filter(suite=suite).select_related("guidance").order_by("-pk")[:MOST_RUNS]
    grouped: dict[str, list[int]] = {}
    for run in runs:
        grouped.setdefault(str(run.guidance) if run.guidance else "no guidance", []).append(run.pk)
    return [_reading(name, keys) for name, keys in grouped.items()]


def _reading(name: str, runs: list[int]) -> Reading:
    issues, highlights, judged = statements(runs)
    return Reading(name, len(runs), judged, issues, highlights)
