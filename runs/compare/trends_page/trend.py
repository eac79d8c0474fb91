"""Draw measures over runs as SVG, without colours or scripts: one large with a link for each point, others small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from evalhub.lib import numbers
from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trend_series import TrendSeries, TrendValue
from runs.compare.trends_page.words import (
    RunWords,
    change_arrow,
    change_look,
    change_sentence,
    point_texts,
    short_day,
    show_value,
    summary,
)

WIDTH, HEIGHT = 1000, 300
"""Of the large drawing; static/js/charts.js gives Plotly's drawing the same margins, so that nothing moves."""
LEFT, RIGHT, TOP, BOTTOM = 8.0, 944.0, 14.0, 268.0
SMALL_WIDTH, SMALL_HEIGHT = 240, 64
MOST_DAYS = 5
"""Days named on the axis."""


@dataclass(frozen=True)
class Plot:
    """Places of runs and values in a drawing."""

    left: float
    right: float
    top: float
    bottom: float
    end: float
    """The value at the top; at the bottom is zero."""
    runs: int

    @property
    def step(self) -> float:
        return (self.right - self.left) / max(self.runs, 1)

    def x(self, place: float) -> float:
        return round(self.left + self.step * (place + 0.5), 1)

    def y(self, value: float) -> float:
        share = min(1.0, max(0.0, value / self.end))
        return round(self.bottom - (self.bottom - self.top) * share, 1)


def axis_end(series: TrendSeries) -> float:
    """Return where a measure's axis ends: 1 for shares, else a round number above all values."""
    if series.is_share:
        return 1.0
    highest = [each.value if each.high is None else each.high for each in series.values]
    known = [*highest, *([series.baseline] if series.baseline is not None else [])]
    return numbers.round_end(1.1 * max(known, default=1.0))


def large_plot(series: TrendSeries, runs: int) -> Plot:
    """Return the places of the large drawing."""
    return Plot(LEFT, RIGHT, TOP, BOTTOM, axis_end(series), runs)


def draw_trend(
    series: TrendSeries, runs: Sequence[TrendRun], words: Sequence[RunWords], marks: Sequence[Mark]
) -> SafeString:
    """Return a measure over runs, oldest first, the axis at the right beside the newest.

    Each point leads to its run and names its values. None is a stop of the keyboard: the page's slider reads them, and
    the table has a link to each run. `words` are those of the runs.
    """
    plot = large_plot(series, len(runs))
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{escape(summary(series))}">']
    parts += _grid(series, plot)
    parts += (_version(plot.x(mark.at - 0.5)) for mark in marks)
    parts += _band(series.values, plot)
    parts += _baseline(series, plot)
    parts += _line(series.values, plot)
    parts += _steps(series, plot, has_sizes=True)
    parts += _points(series, runs, words, plot)
    return mark_safe("".join([*parts, *_days(runs, plot), "</svg>"]))  # noqa: S308


def draw_small_trend(series: TrendSeries, runs: Sequence[TrendRun]) -> SafeString:
    """Return a measure over runs without words: its band, line and steps, the newest value and regressed runs.

    All have the same x axis, and begin at zero; shares end at 100 %.
    """
    plot = Plot(2, SMALL_WIDTH - 4, 5, SMALL_HEIGHT - 4, axis_end(series), len(runs))
    head = (
        f'<svg viewBox="0 0 {SMALL_WIDTH} {SMALL_HEIGHT}" role="img" aria-label="{escape(summary(series))}">'
    )
    floor = f'<line class="grid-line" x1="0" x2="{SMALL_WIDTH}" y1="{plot.bottom:g}" y2="{plot.bottom:g}"/>'
    parts = [head, floor, *_band(series.values, plot), *_line(series.values, plot)]
    parts += _steps(series, plot, has_sizes=False)
    for value in series.values:
        if value.at in series.regressed or value is series.values[-1]:
            regressed = value.at in series.regressed
            parts.append(
                _dot(runs[value.at], plot.x(value.at), plot.y(value.value), 2.6, regressed=regressed)
            )
    return mark_safe("".join([*parts, "</svg>"]))  # noqa: S308


def _grid(series: TrendSeries, plot: Plot) -> Iterator[str]:
    for value in (0.0, plot.end / 2, plot.end):
        y = plot.y(value)
        yield f'<line class="grid-line" x1="{plot.left:g}" x2="{plot.right:g}" y1="{y:g}" y2="{y:g}"/>'
        yield f'<text x="{plot.right + 6:g}" y="{y + 4:g}">{escape(show_value(series, value))}</text>'


def _version(x: float) -> str:
    return f'<line class="version" x1="{x:g}" x2="{x:g}" y1="{TOP:g}" y2="{BOTTOM:g}"/>'


def _baseline(series: TrendSeries, plot: Plot) -> Iterator[str]:
    if series.baseline is not None:
        y, title = plot.y(series.baseline), f"Baseline {show_value(series, series.baseline)}"
        yield f'<line class="baseline" x1="{plot.left:g}" x2="{plot.right:g}" y1="{y:g}" y2="{y:g}">'
        yield f"<title>{escape(title)}</title></line>"


def _band(values: Sequence[TrendValue], plot: Plot) -> Iterator[str]:
    known = [(plot.x(each.at), each) for each in values if each.low is not None and each.high is not None]
    if len(known) < 2:
        return
    upper = [f"{x:g},{plot.y(each.high or 0.0):g}" for x, each in known]
    lower = [f"{x:g},{plot.y(each.low or 0.0):g}" for x, each in reversed(known)]
    yield f'<polygon class="band" points="{" ".join(upper + lower)}"/>'


def _line(values: Sequence[TrendValue], plot: Plot) -> Iterator[str]:
    if len(values) > 1:
        places = " ".join(f"{plot.x(each.at):g},{plot.y(each.value):g}" for each in values)
        yield f'<polyline class="line" points="{places}"/>'


def _steps(series: TrendSeries, plot: Plot, *, has_sizes: bool) -> Iterator[str]:
    """Yield a step from level to level at each change, with its size beside it."""
    ends = [0, *(each.at for each in series.changes), series.values[-1].at + 1 if series.values else 0]
    for index, change in enumerate(series.changes):
        x, left, right = (plot.x(place - 0.5) for place in (change.at, ends[index], ends[index + 2]))
        before, after = plot.y(change.before), plot.y(change.after)
        yield f'<g class="step {change_look(series, change)}">'
        yield f'<path d="M{left:g} {before:g}H{x:g}V{after:g}H{right:g}"/>'
        if has_sizes:
            yield f"<title>Changed {escape(change_sentence(series, change))}</title>"
            y = max(before, after) + 16 if max(before, after) < plot.bottom - 20 else min(before, after) - 8
            is_late = x > plot.right - 70
            place = f'x="{x - 4 if is_late else x + 4:g}" text-anchor="{"end" if is_late else "start"}"'
            yield f'<text {place} y="{y:g}">{change_arrow(series, change)}</text>'
        yield "</g>"


def _points(
    series: TrendSeries, runs: Sequence[TrendRun], words: Sequence[RunWords], plot: Plot
) -> Iterator[str]:
    radius, reach = (3.5, 9.0) if plot.step >= 9 else (2.4, max(4.0, plot.step / 2))
    for value, text in zip(series.values, point_texts(series, words), strict=True):
        run, x, y = runs[value.at], plot.x(value.at), plot.y(value.value)
        yield f'<a class="point" href="../runs/{run.pk}/" tabindex="-1" data-run="{run.pk}"><title>{escape(text)}</title>'
        yield f'<circle class="hit" cx="{x:g}" cy="{y:g}" r="{reach:.1f}"/>'
        yield _dot(run, x, y, radius, regressed=value.at in series.regressed) + "</a>"


def _dot(run: TrendRun, x: float, y: float, radius: float, *, regressed: bool) -> str:
    if regressed:
        return f'<path class="dot is-regressed" d="M{x - 5:g} {y - 4:g}h10l-5 9z"/>'
    look = "dot is-experiment" if run.is_experiment else "dot"
    return f'<circle class="{look}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'


def _days(runs: Sequence[TrendRun], plot: Plot) -> Iterator[str]:
    """Yield the days of some runs, evenly spread."""
    last = len(runs) - 1
    labels = min(MOST_DAYS, len(runs))
    for place in sorted({round(index * last / max(1, labels - 1)) for index in range(labels)}):
        anchor = "start" if place == 0 and last else "end" if place == last and last else "middle"
        x = {"start": plot.left, "end": plot.right, "middle": plot.x(place)}[anchor]
        yield f'<text x="{x:g}" y="{HEIGHT - 12}" text-anchor="{anchor}">{short_day(runs[place].at)}</text>'
