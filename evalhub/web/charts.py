"""Small figures drawn into a page as SVG or HTML: no colours, no script, classes only.

Larger charts are Plotly figures; tables show dozens of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalhub.lib.numbers import format_percent

OUTCOMES = {"pass": "passed", "fail": "failed", "error": "error", "none": "not run", "running": "running"}
INTERVAL_WIDTH = 110
SPARK_WIDTH, SPARK_HEIGHT = 168, 30


def draw_dots(outcomes: Iterable[str], here: int | None = None) -> SafeString:
    """Return a strip of trials, oldest first; `gap` draws the line of a version change, `here` rings one."""
    # Sessions have no outcome.
    marks = tuple([each or "none" for each in outcomes])
    counts = ", ".join(f"{marks.count(key)} {word}" for key, word in OUTCOMES.items() if key in marks)
    classes = [("" if key == "pass" else key) + (" here" if n == here else "") for n, key in enumerate(marks)]
    drawn = format_html_join("", '<i class="{}"></i>', ((each.strip(),) for each in classes))
    return format_html(
        '<span class="dots" role="img" aria-label="{}">{}</span>', counts or "no trials", drawn
    )


def draw_interval(
    low: float,
    estimate: float,
    high: float,
    *,
    start: float = 0.0,
    end: float = 1.0,
    state: str = "",
    mark: float | None = None,
) -> SafeString:
    """Return an estimate with its interval on the scale from start to end; values beyond it stop at the edge."""

    def x(value: float) -> str:
        share = (min(max(value, start), end) - start) / (end - start)
        return f"{4 + (INTERVAL_WIDTH - 8) * share:.1f}"

    # On a scale of shares the label says per cents, else the values.
    show = format_percent if (start, end) == (0.0, 1.0) else "{:.3g}".format
    line = (
        mark_safe("")
        if mark is None
        else format_html('<line class="zero" x1="{0}" x2="{0}" y1="1" y2="13"/>', x(mark))
    )
    return format_html(
        '<svg class="interval {}" role="img" width="{}" height="14" aria-label="{}, 95 % interval {} to {}">'
        '<line class="track" x1="2" x2="{}" y1="7" y2="7"/>{}'
        '<line class="range" x1="{}" x2="{}" y1="7" y2="7"/><circle class="point" cx="{}" cy="7" r="2.5"/></svg>',
        state,
        INTERVAL_WIDTH,
        show(estimate),
        show(low),
        show(high),
        INTERVAL_WIDTH - 2,
        line,
        x(low),
        x(high),
        x(estimate),
    )


def draw_bar(
    parts: Iterable[tuple[str, float]], *, total: float, label: str, threshold: float | None = None
) -> SafeString:
    """Return one bar of parts (class, amount) out of total; it stretches to its cell."""
    whole = total or 1
    at = 0.0
    rects = [("rest", "0", f"{whole:g}")]
    for name, amount in parts:
        rects.append((name, f"{at:g}", f"{amount:g}"))
        at += amount
    if threshold is not None:
        rects.append(("threshold", f"{threshold:g}", f"{whole / 150:.4f}"))
    return format_html(
        '<svg class="bar" role="img" aria-label="{}" viewBox="0 0 {} 4" preserveAspectRatio="none">{}</svg>',
        label,
        f"{whole:g}",
        format_html_join("", '<rect class="{}" x="{}" width="{}" height="4"/>', rects),
    )


def draw_sparkline(
    values: Sequence[float],
    *,
    label: str,
    baseline: float | None = None,
    band: Sequence[tuple[float, float]] = (),
) -> SafeString:
    """Return a line over shares of 0 to 1, one a run, evenly spaced, with the baseline dotted.

    `band` has the ends of each share's interval, or nothing.
    """
    if len(values) < 2:
        return format_html('<span class="muted">{}</span>', "one run" if values else "–")

    def point(index: int, value: float) -> str:
        x = 2 + (SPARK_WIDTH - 6) * index / (len(values) - 1)
        return f"{x:.1f} {2 + (SPARK_HEIGHT - 4) * (1 - min(max(value, 0.0), 1.0)):.1f}"

    points = [point(index, value) for index, value in enumerate(values)]
    lower, upper = ([point(index, each[end]) for index, each in enumerate(band)] for end in (0, 1))
    around = format_html('<path class="band" d="M{}Z"/>', " L".join([*upper, *lower[::-1]])) if band else ""
    dotted = mark_safe("")
    if baseline is not None:
        dotted = format_html(
            '<path class="baseline" d="M{} L{}"/>', point(0, baseline), point(len(values) - 1, baseline)
        )
    x, y = points[-1].split()
    return format_html(
        '<svg class="spark" role="img" aria-label="{}" width="{}" height="{}">{}{}'
        '<path class="line" d="M{}"/><circle class="dot" cx="{}" cy="{}" r="2"/></svg>',
        label,
        SPARK_WIDTH,
        SPARK_HEIGHT,
        around,
        dotted,
        " L".join(points),
        x,
        y,
    )


def draw_day_bars(days: Sequence[tuple[str, float]], *, label: str) -> SafeString:
    """Return a bar for each day (its name, an amount), the highest as high as the figure."""
    most = max((amount for _, amount in days), default=0.0) or 1.0
    bars = [
        (24 * n + 2, f"{24 - 22 * amount / most:.1f}", f"{22 * amount / most:.1f}", 24 * n + 12, name[:1])
        for n, (name, amount) in enumerate(days)
    ]
    return format_html(
        '<svg class="days" role="img" aria-label="{}" width="{}" height="36">{}</svg>',
        label,
        24 * len(days),
        format_html_join(
            "",
            '<rect x="{}" y="{}" width="20" height="{}"/><text x="{}" y="35" text-anchor="middle">{}</text>',
            bars,
        ),
    )


def dumbbell(
    before: float,
    after: float,
    *,
    band: tuple[float, float] | None = None,
    label: str = "",
    look: str = "",
) -> SafeString:
    """Return two shares of an axis: the old one grey, a line to the new one. Only a verdict gives the new one a look.

    `band` is an area of the axis behind both.
    """
    old, new = _dumbbell_x(before), _dumbbell_x(after)
    return format_html(
        '<svg class="dumbbell {}" role="img" aria-label="{}" viewBox="0 0 120 14" width="120" height="14">'
        '<line class="track" x1="4" x2="116" y1="7" y2="7"/>{}<line class="move" x1="{}" x2="{}" y1="7" y2="7"/>'
        '<circle class="old" cx="{}" cy="7" r="3.5"/><circle class="new" cx="{}" cy="7" r="4"/></svg>',
        look,
        label or f"{format_percent(before)} to {format_percent(after)}",
        _draw_band(*band) if band else "",
        *(f"{each:.1f}" for each in (old, new, old, new)),
    )


def _draw_band(low: float, high: float) -> SafeString:
    left, right = _dumbbell_x(low) - 2, _dumbbell_x(high) + 2
    sizes = f"{left:.1f}", f"{right - left:.1f}"
    return format_html('<rect class="band" x="{}" y="2" width="{}" height="10" rx="2"/>', *sizes)


def _dumbbell_x(share: float) -> float:
    return 4 + 112 * min(max(share, 0.0), 1.0)


Ends = tuple[float, float]
NARROW = 340


@dataclass(frozen=True)
class LineOfRuns:
    """Pass rates from 0 to 1, the oldest first; the last is the newest run's."""

    rates: Sequence[float]
    interval: Ends
    """The newest run's 95 % interval."""
    band: Ends | None = None
    """Where the newest was expected; None for too few runs before it."""
    look: str = "is-little"
    """The class of its verdict; a colour needs one."""
    since: int | None = None
    """The first run that left the band, by its place."""
    flags: Mapping[int, str] = field(default_factory=dict)
    """What changed before a run, by its place."""

    @property
    def start(self) -> float:
        """Where the axis begins: half, or zero where something lies below."""
        lowest = min([*self.rates, self.interval[0], *(self.band or ())])
        return 0.5 if lowest >= 0.5 else 0.0


@dataclass(frozen=True)
class _Plot:
    """Places of a chart in pixels."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    start: float
    runs: int

    def x(self, place: float) -> float:
        return self.left + (self.right - self.left) * (place / (self.runs - 1) if self.runs > 1 else 0.5)

    def y(self, rate: float) -> float:
        share = (min(max(rate, self.start), 1.0) - self.start) / (1.0 - self.start)
        return self.bottom - (self.bottom - self.top) * share


def draw_line(
    line: LineOfRuns, *, label: str, show: Callable[[float], str], is_narrow: bool = False
) -> SafeString:
    """Return a large chart with an axis from 0 or 50 % to 100 %, the newest value and what changed before it.

    A narrow one is for screens on which the other's words would be too small.
    """
    width, height = (NARROW, 170) if is_narrow else (640, 190)
    plot = _Plot(width, height, 44, width - 80, 10, height - 32, line.start, len(line.rates))
    return _svg(
        plot, line, label, [*_steps(plot, show), *_layers(plot, line, 5.0), *_words(plot, line, show)]
    )


def draw_small_line(line: LineOfRuns, *, label: str, start: float) -> SafeString:
    """Return a small chart without words, whose axis begins at `start`, as that of all beside it does."""
    plot = _Plot(200, 40, 4, 192, 5, 35, start, len(line.rates))
    return _svg(plot, line, label, _layers(plot, line, 3.5))


def _svg(plot: _Plot, line: LineOfRuns, label: str, parts: Sequence[str]) -> SafeString:
    head = (
        f'<svg class="line-chart {line.look}{" is-narrow" if plot.width == NARROW else ""}" role="img" aria-label="{escape(label)}" '
        f'viewBox="0 0 {plot.width:g} {plot.height:g}" width="{plot.width:g}" height="{plot.height:g}">'
    )
    return mark_safe("".join([head, *parts, "</svg>"]))  # noqa: S308  # only numbers and escaped texts


def _steps(plot: _Plot, show: Callable[[float], str]) -> Iterator[str]:
    for rate in (plot.start, (1.0 + plot.start) / 2, 1.0):
        y = plot.y(rate)
        yield f'<line class="grid-line" x1="{plot.left:g}" x2="{plot.right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{plot.left - 6:g}" y="{y + 4:.1f}" text-anchor="end">{escape(show(rate))}</text>'


def _layers(plot: _Plot, line: LineOfRuns, radius: float) -> list[str]:
    last = len(line.rates) - 1
    parts = []
    if line.band:
        top, height = plot.y(line.band[1]), plot.y(line.band[0]) - plot.y(line.band[1])
        width = plot.right - plot.left
        parts.append(
            f'<rect class="band" x="{plot.left:g}" y="{top:.1f}" width="{width:g}" height="{max(height, 1):.1f}"/>'
        )
    if line.since is not None:
        begin = plot.x(max(line.since - 0.5, 0))
        parts.append(
            f'<rect class="since" x="{begin:.1f}" y="{plot.top:g}" width="{plot.right + 6 - begin:.1f}" '
            f'height="{plot.bottom - plot.top:g}"/>'
        )
    points = " L".join(f"{plot.x(place):.1f} {plot.y(rate):.1f}" for place, rate in enumerate(line.rates))
    parts.append(f'<path class="line" d="M{points}"/>')
    parts += (
        f'<circle class="point" cx="{plot.x(place):.1f}" cy="{plot.y(rate):.1f}" r="{radius / 2.3:.1f}"/>'
        for place, rate in enumerate(line.rates[:-1])
    )
    x, (low, high) = plot.x(last), line.interval
    parts.append(
        f'<line class="own" x1="{x:.1f}" x2="{x:.1f}" y1="{plot.y(low):.1f}" y2="{plot.y(high):.1f}"/>'
    )
    parts.append(f'<circle class="newest" cx="{x:.1f}" cy="{plot.y(line.rates[-1]):.1f}" r="{radius:g}"/>')
    return parts


def _words(plot: _Plot, line: LineOfRuns, show: Callable[[float], str]) -> Iterator[str]:
    for place, text in line.flags.items():
        x = plot.x(max(place - 0.5, 0))
        yield f'<line class="flag" x1="{x:.1f}" x2="{x:.1f}" y1="{plot.top:g}" y2="{plot.bottom + 8:g}"/>'
        yield f'<text class="flagged" x="{x:.1f}" y="{plot.bottom + 24:g}" text-anchor="{_anchor(plot, x)}">{escape(text)}</text>'
    newest = line.rates[-1]
    yield f'<text class="value" x="{plot.x(len(line.rates) - 1) + 12:.1f}" y="{plot.y(newest) + 6:.1f}">{escape(show(newest))}</text>'


def _anchor(plot: _Plot, x: float) -> str:
    """Return which end of a text stands at x, so that the text stays within the chart."""
    third = plot.width / 3
    return "start" if x < third else "middle" if x < 2 * third else "end"


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
