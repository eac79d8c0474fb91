"""A comparison's measures, and a skill's lift, as tables of plain text."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluators.statistics.measure_change import MeasureChange
from runs.compare.guidance.lift_findings import Lift
from runs.compare.shown_changes import ShownChange

WIDTH = 120
LIFT_COLUMNS = ("Statement", "Case", "", "Without", "With")
COLUMNS = ("Measure", "A", "B", "Difference", "95 % interval", "n", "Verdict")


def plain_measure_table(measures: Sequence[MeasureChange]) -> str:
    """Return each measure's change on a line."""
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for shown in map(ShownChange, measures):
        change = shown.change
        table.add_row(
            shown.label,
            _number(change.before),
            _number(change.after),
            shown.size,
            shown.interval,
            str(change.scenarios),
            change.verdict.label,
        )
    return _as_text(table)


def plain_lift(lift: Lift) -> str:
    """Return what a skill adds: a sentence, its statements by kind, and the cases that it makes dearer."""
    table = Table(*LIFT_COLUMNS, box=None, pad_edge=False)
    for word, _, statements in lift.kinds:
        for statement in statements:
            rates = (f"{side.mean:.0%} of {side.n}" for side in (statement.before, statement.after))
            table.add_row(word, statement.scenario, Text(statement.text), *rates)
    dearer = [f"Dearer: {key}, {shown.label.lower()} {shown.size}." for key, shown in lift.dearer]
    return "\n".join([*lift.sentences, "", *([_as_text(table)] if lift.statements else []), *dearer])


def _as_text(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=WIDTH, no_color=True, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
