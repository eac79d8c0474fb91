"""The statements of the reviews page as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from evalhub.web.csv_export import Table
from runs.pages.reviews.rationales import Reading

COLUMNS = ("guidance", "runs", "judgings", "kind", "statement", "times", "trials")


def review_table(slug: str, readings: Iterable[Reading]) -> Table:
    """Return every statement of the judges; `trials` are the numbers of those with it."""
    rows = (
        (
            *(reading.guidance, reading.runs, reading.judged, kind, each.text, len(each.trials)),
            " ".join(map(str, each.trials)),
        )
        for reading in readings
        for kind, statements in (("issue", reading.issues), ("highlight", reading.highlights))
        for each in statements
    )
    return Table(f"{slug or 'no-suite'}-reviews", COLUMNS, rows)
