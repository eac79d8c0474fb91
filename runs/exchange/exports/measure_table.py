"""A comparison's measures as a table of plain text."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from evaluators.statistics import verdict_sentences
from evaluators.statistics.measure_change import MeasureChange
from runs.results.measures import label_of_key

WIDTH = 120
COLUMNS = ("Measure", "A", "B", "Difference", "95 % interval", "n", "Verdict")


def plain_measure_table(measures: Sequence[MeasureChange]) -> str:
    """Return each measure's change on a line."""
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for each in measures:
        table.add_row(
            label_of_key(each.rule.name),
            _number(each.before),
            _number(each.after),
            verdict_sentences.size(each, each.effect),
            verdict_sentences.interval(each),
            str(each.scenarios),
            each.verdict.label,
        )
    out = io.StringIO()
    Console(file=out, width=WIDTH, no_color=True, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
