"""The statements of the rationales page as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from evalhub.web.csv_export import Table
from runs.pages.reviews.rationales import Reading

COLUMNS = ("tool_version", "guidance", "runs", "judgings", "kind", "statement", "times", "trials")


def review_table(slug: str, readings: Iterable[Reading]) -> Table:
    """Return every statement of the judges; `trials` are the numbers of those with it."""
    rows = (
        (
            *(reading.tool, reading.guidance, reading.runs, reading.judged, group.kind, wording.text),
            *(len(wording.references), " ".join(map(str, wording.trials))),
        )
        for reading in readings
        for groups in reading.groups.values()
        for group in groups
        for wording in group.wordings
    )
    return Table(f"{slug or 'no-suite'}-reviews", COLUMNS, rows)
