"""A measure over runs as columns with intervals: drawn by the server, no colours, no script, classes only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

WIDTH, HEIGHT = 400, 120
LEFT, RIGHT, TOP, BOTTOM = 38.0, 396.0, 8.0, 102.0
WIDEST = 24.0


class Column(NamedTuple):
    """A run in the figure; without a value its place stays empty."""

    run: int
    at: datetime | None
    value: float | None
    low: float | None = None
    high: float | None = None
    regressed: bool = False


def draw_columns(
    drawn: Sequence[Column], *, end: float, baseline: float | None, show: Callable[[float], str]
) -> SafeString:
    """Return columns, oldest first, over a scale from 0 to `end`, with the baseline dotted.

    Values beyond the scale are clipped. `show` formats a value. Each column links to its run, relative to the
    list of runs, and has a full title. Only marked columns take keyboard focus, because the list below has them all.
    """
    known = [each.value for each in drawn if each.value is not None]
    label = f"Columns, {len(known)} runs, the newest {show(known[-1])}" if known else "No data"
    if baseline is not None:
        label += f", baseline {show(baseline)}"
    # Only text is escaped: the dozens of other pieces are numbers.
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{escape(label)}">']
    parts += [_step(value, _y(value, end), show) for value in (0.0, end / 2, end)]
    parts += _columns(drawn, end, show)
    if baseline is not None:
        y = _y(baseline, end)
        parts.append(f'<line class="baseline" x1="38" x2="396" y1="{y:g}" y2="{y:g}"/>')
    return mark_safe("".join([*parts, *_days(drawn), "</svg>"]))  # noqa: S308


def _y(value: float, end: float) -> float:
    share = value / end
    return round(TOP if share > 1.0 else BOTTOM if share < 0.0 else BOTTOM - (BOTTOM - TOP) * share, 1)


def _step(value: float, y: float, show: Callable[[float], str]) -> str:
    line = f'<line class="grid-line" x1="38" x2="396" y1="{y:g}" y2="{y:g}"/>'
    return f'{line}<text x="32" y="{y + 4:g}" text-anchor="end">{escape(show(value))}</text>'


def _columns(drawn: Sequence[Column], end: float, show: Callable[[float], str]) -> Iterator[str]:
    step = (RIGHT - LEFT) / len(drawn)
    wide = min(step * 0.64, WIDEST)
    for place, column in enumerate(drawn):
        if column.value is None:
            continue
        x, y = LEFT + step * (place + 0.5), _y(column.value, end)
        top = y if column.high is None else _y(column.high, end)
        look = "column" + (" is-regressed" if column.regressed else "")
        look += " is-last" if place == len(drawn) - 1 else ""
        stop = "" if column.regressed else ' tabindex="-1"'
        yield f'<a href="{column.run}/"{stop}><title>{escape(_column_title(column, show(column.value), show))}</title>'
        yield f'<rect class="{look}" x="{x - wide / 2:.1f}" y="{y:g}" width="{wide:.1f}" height="{BOTTOM - y:.1f}" rx="1"/></a>'
        if column.regressed:
            yield f'<path class="change-text" d="M{x - 3:.1f} {top - 7:.1f}h6l-3 4.5z"/>'
        if column.low is not None:
            yield f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{_y(column.low, end):g}"/>'


def _column_title(column: Column, value: str, show: Callable[[float], str]) -> str:
    words = f"Run {column.run}, {_day(column.at)}, {value}" if column.at else f"Run {column.run}, {value}"
    if column.low is not None and column.high is not None:
        words += f", 95 % interval {show(column.low)} to {show(column.high)}"
    return f"{words}, regressed" if column.regressed else words


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b}"


def _days(drawn: Sequence[Column]) -> Iterator[str]:
    """Yield the days of the first and the last run, and of the middle one if there is room."""
    step, last = (RIGHT - LEFT) / len(drawn), len(drawn) - 1
    places = {0: "start", len(drawn) // 2: "middle", last: "end"} if last >= 4 else {0: "start", last: "end"}
    for place, anchor in places.items():
        at = drawn[place].at
        if at is not None:
            x = LEFT + step * (place + 0.5)
            yield f'<text x="{x:.1f}" y="117" text-anchor="{anchor}">{_day(at)}</text>'
