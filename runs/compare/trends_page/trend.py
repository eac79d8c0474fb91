"""Draw a measure over runs as points with intervals: SVG without colours or scripts, so that every point is a link."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

from evalhub.lib import numbers
from evaluators.statistics.change_points import ChangePoint
from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trend_series import TrendSeries, TrendValue

WIDTH, HEIGHT = 440, 172
LEFT, RIGHT, TOP, BOTTOM = 46.0, 434.0, 22.0, 148.0


class RunWords(NamedTuple):
    """The words of a run's points, which are the same in every drawing."""

    which: str
    """Its number and day."""
    more: list[str]
    """Whether it regressed or is an experiment, its tool and guidance."""


def run_words(run: TrendRun) -> RunWords:
    """Return the words of a run's points."""
    more = []
    if run.regressed:
        more.append(f"regressed, alert {run.alert.replace('_', ' ')}" if run.alert else "regressed")
    if run.is_experiment:
        more.append("experiment")
    return RunWords(
        f"Run {run.pk}, {_day(run)}", [*more, *filter(None, (run.tool_version, run.guidance_name))]
    )


def trend_drawing(
    series: TrendSeries, runs: Sequence[TrendRun], words: Sequence[RunWords], marks: Sequence[Mark]
) -> SafeString:
    """Return a measure over runs, oldest first; every drawing of the same runs has the same x axis.

    `words` are those of the runs.

    Each point leads to its run and names its values. Only the newest and marked points are stops of the keyboard,
    because the table has them all.
    """
    scale = _Scale(series, len(runs))
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{escape(_summary(series))}">']
    parts += _grid(series, scale)
    parts += _marks(marks, scale)
    parts += _bands(series.values, scale)
    if series.baseline is not None:
        y = scale.y(series.baseline)
        title = f"Baseline {show_value(series, series.baseline)}"
        parts.append(f'<line class="baseline" x1="{LEFT:g}" x2="{RIGHT:g}" y1="{y:g}" y2="{y:g}">')
        parts.append(f"<title>{escape(title)}</title></line>")
    parts += _line(series.values, scale)
    parts += _changes(series, scale)
    parts += _points(series, runs, words, scale)
    return mark_safe("".join([*parts, *_days(runs, scale), "</svg>"]))  # noqa: S308


class _Scale:
    """Places of runs and values in the drawing."""

    def __init__(self, series: TrendSeries, runs: int) -> None:
        highest = [each.value if each.high is None else each.high for each in series.values]
        known = [*highest, *([series.baseline] if series.baseline is not None else [])]
        self.end = 1.0 if series.is_share else numbers.round_end(1.1 * max(known, default=1.0))
        self.step = (RIGHT - LEFT) / max(runs, 1)

    def x(self, place: float) -> float:
        return round(LEFT + self.step * (place + 0.5), 1)

    def y(self, value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * min(1.0, max(0.0, value / self.end)), 1)


def show_value(series: TrendSeries, value: float) -> str:
    """Return a value in its unit; rates in percent."""
    return numbers.measured(value, series.unit)


def show_difference(series: TrendSeries, change: float) -> str:
    """Return a difference in points, or in its unit with a sign."""
    if series.is_share:
        return f"{100 * change:+.0f} pts".replace("-", "−")
    return ("+" if change > 0 else "−") + show_value(series, abs(change))


def change_sentence(series: TrendSeries, change: ChangePoint) -> str:
    """Return a change point in words, such as `from 85 % to 70 % (−15 pts)`."""
    levels = f"from {show_value(series, change.before)} to {show_value(series, change.after)}"
    return f"{levels} ({show_difference(series, change.after - change.before)})"


def change_look(series: TrendSeries, change: ChangePoint) -> str:
    """Return the class of a change: is-good, is-bad, or empty where neither direction is better."""
    if series.better not in ("higher", "lower"):
        return ""
    return "is-good" if (change.after > change.before) == (series.better == "higher") else "is-bad"


def _summary(series: TrendSeries) -> str:
    if not series.values:
        return f"{series.label}, not measured"
    newest = show_value(series, series.values[-1].value)
    changes = numbers.counted(len(series.changes), "change point")
    return f"{series.label}, {numbers.counted(len(series.values), 'run')}, the newest {newest}, {changes}"


def _grid(series: TrendSeries, scale: _Scale) -> Iterator[str]:
    for value in (0.0, scale.end / 2, scale.end):
        y = scale.y(value)
        yield f'<line class="grid-line" x1="{LEFT:g}" x2="{RIGHT:g}" y1="{y:g}" y2="{y:g}"/>'
        yield f'<text x="{LEFT - 6:g}" y="{y + 4:g}" text-anchor="end">{escape(show_value(series, value))}</text>'


def _marks(marks: Sequence[Mark], scale: _Scale) -> Iterator[str]:
    free = 0.0
    for mark in marks:
        x = scale.x(mark.at - 0.5)
        yield f'<g><title>{escape(mark.words)}</title><line class="version" x1="{x:g}" x2="{x:g}" y1="{TOP - 6:g}" y2="{BOTTOM:g}"/>'
        width = 5 + 7 * len(mark.flags)
        if x - width / 2 >= free:
            yield f'<rect class="flag" x="{x - width / 2:.1f}" y="3" width="{width}" height="13" rx="2"/>'
            yield f'<text class="flag-text" x="{x:g}" y="13">{mark.flags}</text>'
            free = x + width / 2 + 2
        yield "</g>"


def _bands(values: Sequence[TrendValue], scale: _Scale) -> Iterator[str]:
    known = [(scale.x(each.at), each) for each in values if each.low is not None and each.high is not None]
    if len(known) < 2:
        return
    upper = [f"{x:g},{scale.y(each.high or 0.0):g}" for x, each in known]
    lower = [f"{x:g},{scale.y(each.low or 0.0):g}" for x, each in reversed(known)]
    yield f'<polygon class="band" points="{" ".join(upper + lower)}"/>'


def _line(values: Sequence[TrendValue], scale: _Scale) -> Iterator[str]:
    if len(values) > 1:
        places = " ".join(f"{scale.x(each.at):g},{scale.y(each.value):g}" for each in values)
        yield f'<polyline class="line" points="{places}"/>'


def _changes(series: TrendSeries, scale: _Scale) -> Iterator[str]:
    """Yield a step from level to level at each change, with its difference."""
    ends = [0, *(each.at for each in series.changes), series.values[-1].at + 1 if series.values else 0]
    for index, change in enumerate(series.changes):
        x, left, right = (scale.x(place - 0.5) for place in (change.at, ends[index], ends[index + 2]))
        before, after = scale.y(change.before), scale.y(change.after)
        yield f'<g class="step {change_look(series, change)}"><title>Changed {escape(change_sentence(series, change))}</title>'
        yield f'<path d="M{left:g} {before:g}H{x:g}V{after:g}H{right:g}"/>'
        text = f"{'▲' if change.after > change.before else '▼'} {show_difference(series, abs(change.after - change.before)).lstrip('+')}"
        y = max(before, after) + 14 if max(before, after) < BOTTOM - 18 else min(before, after) - 8
        anchor = "end" if x > RIGHT - 70 else "start"
        yield f'<text x="{x - 4 if anchor == "end" else x + 4:g}" y="{y:g}" text-anchor="{anchor}">{text}</text></g>'


def _points(
    series: TrendSeries, runs: Sequence[TrendRun], words: Sequence[RunWords], scale: _Scale
) -> Iterator[str]:
    radius, reach = (3.0, 7.0) if scale.step >= 9 else (2.2, max(3.0, scale.step / 2))
    starts = {change.at: change for change in series.changes}
    previous: TrendValue | None = None
    for each in series.values:
        run, x, y = runs[each.at], scale.x(each.at), scale.y(each.value)
        is_stop = run.regressed or each.at in starts or each is series.values[-1]
        title = _title(series, words[each.at], each, previous, starts.get(each.at))
        stop = "" if is_stop else ' tabindex="-1"'
        yield f'<a href="../runs/{run.pk}/"{stop}><title>{escape(title)}</title>'
        yield f'<circle class="hit" cx="{x:g}" cy="{y:g}" r="{reach:.1f}"/>'
        if run.regressed:
            yield f'<path class="dot is-regressed" d="M{x - 5:g} {y - 4:g}h10l-5 9z"/></a>'
        else:
            look = "dot is-experiment" if run.is_experiment else "dot"
            yield f'<circle class="{look}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/></a>'
        previous = each


def _title(
    series: TrendSeries,
    words: RunWords,
    each: TrendValue,
    previous: TrendValue | None,
    change: ChangePoint | None,
) -> str:
    parts = [f"{words.which}: {show_value(series, each.value)}"]
    if each.low is not None and each.high is not None:
        parts.append(f"95 % interval {show_value(series, each.low)} to {show_value(series, each.high)}")
    parts.append(f"n = {each.n}")
    if previous and not math.isclose(previous.value, each.value, abs_tol=1e-9):
        parts.append(f"{show_difference(series, each.value - previous.value)} since the run before")
    if change:
        parts.append(f"changed {change_sentence(series, change)}")
    return ", ".join([*parts, *words.more])


def _day(run: TrendRun) -> str:
    return f"{run.at.day} {run.at:%b}"


def _days(runs: Sequence[TrendRun], scale: _Scale) -> Iterator[str]:
    """Yield the days of up to five runs, evenly spread."""
    last = len(runs) - 1
    labels = min(5, len(runs))
    places = sorted({round(index * last / max(1, labels - 1)) for index in range(labels)})
    for place in places:
        anchor = "start" if place == 0 and last else "end" if place == last and last else "middle"
        x = {"start": scale.x(place) - 4, "end": scale.x(place) + 4, "middle": scale.x(place)}[anchor]
        yield f'<text x="{x:g}" y="166" text-anchor="{anchor}">{_day(runs[place])}</text>'
