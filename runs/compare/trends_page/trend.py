"""Draw measures over runs as SVG, without colours or scripts, and say in words what the drawings show.

One is large, with a link for each point; others are small. Below the large one's axis are flags of what ran, and
what people noted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

from evalhub.lib import numbers
from evalhub.lib.numbers import format_count
from evalhub.web.sanitize import show_text
from evaluators.statistics.change_points import ChangePoint
from runs.compare.trend_series import Mark, TrendRun, TrendSeries, TrendValue
from runs.models import Annotation


class RunWords(NamedTuple):
    """The words of a run's points, which are the same for every measure."""

    which: str
    """Its number and day."""
    more: list[str]
    """Whether it regressed or is an experiment, its tool and guidance."""


def run_words(run: TrendRun) -> RunWords:
    """Return the words of a run's points."""
    more = []
    if run.regressed:
        more.append(f"run regressed, alert {run.alert.lower()}" if run.alert else "run regressed")
    if run.is_experiment:
        more.append("experiment")
    return RunWords(
        f"Run {run.pk}, {short_day(run.at)}",
        [*more, *filter(None, (run.tool_version, run.guidance_name))],
    )


def short_day(at: date) -> str:
    """Return a day for an axis, such as `3 Nov`."""
    return f"{at.day} {at:%b}"


def show_value(series: TrendSeries, value: float) -> str:
    """Return a value in its unit; rates in percent."""
    return numbers.format_measure(value, series.unit)


def show_difference(series: TrendSeries, change: float) -> str:
    """Return a difference in points, or in its unit with a sign."""
    if series.is_share:
        return f"{100 * change:+.0f} pts".replace("-", "−")
    return ("+" if change > 0 else "−") + show_value(series, abs(change))


def change_sentence(series: TrendSeries, change: ChangePoint) -> str:
    """Return a change point in words, such as `from 85 % to 70 % (−15 pts)`."""
    levels = f"from {show_value(series, change.before)} to {show_value(series, change.after)}"
    return f"{levels} ({show_difference(series, change.after - change.before)})"


def change_arrow(series: TrendSeries, change: ChangePoint) -> str:
    """Return a change point's size with its direction, such as `▼ 15 pts`."""
    size = show_difference(series, abs(change.after - change.before)).lstrip("+")
    return f"{'▲' if change.after > change.before else '▼'} {size}"


def change_look(series: TrendSeries, change: ChangePoint) -> str:
    """Return the class of a change: is-good, is-bad, or empty where neither direction is better."""
    if series.better not in ("higher", "lower"):
        return ""
    return "is-good" if (change.after > change.before) == (series.better == "higher") else "is-bad"


def describe_series(series: TrendSeries) -> str:
    """Return a series as the name of its drawing."""
    if not series.values:
        return f"{series.label}, not measured"
    newest = show_value(series, series.values[-1].value)
    changes = numbers.format_count(len(series.changes), "change point")
    return (
        f"{series.label}, {numbers.format_count(len(series.values), 'run')}, the newest {newest}, {changes}"
    )


def point_texts(series: TrendSeries, words: Sequence[RunWords]) -> list[str]:
    """Return each value of a series with its run, its interval and what changed, oldest first."""
    starts = {change.at: change for change in series.changes}
    before = [None, *series.values]
    return [
        _point_text(series, words[value.at], value, previous, starts.get(value.at))
        for previous, value in zip(before, series.values, strict=False)
    ]


def _point_text(
    series: TrendSeries,
    words: RunWords,
    value: TrendValue,
    previous: TrendValue | None,
    change: ChangePoint | None,
) -> str:
    parts = [f"{words.which}: {show_value(series, value.value)}"]
    if value.low is not None and value.high is not None:
        parts.append(f"95 % interval {show_value(series, value.low)} to {show_value(series, value.high)}")
    parts.append(f"n = {value.n}")
    if previous and not math.isclose(previous.value, value.value, abs_tol=1e-9):
        parts.append(f"{show_difference(series, value.value - previous.value)} since the run before")
    if change:
        parts.append(f"changed {change_sentence(series, change)}")
    return ", ".join([*parts, *words.more])


def mark_words(mark: Mark, runs: Sequence[TrendRun]) -> str:
    """Return what changed before a run, with the run."""
    run = runs[mark.at]
    return f"{mark.words}, run {run.pk}, {short_day(run.at)}"


ORDER = "TGMJS"
APART = 30.0
"""Marks closer than this are one."""
LANE = 22
MOST_NAMED = 3
"""Changes that one mark names; the table has all."""
LONGEST_SHOWN = 130


class _Sign(NamedTuple):
    at: float
    """Position among the runs."""
    flags: str
    words: str


def draw_strip(
    marks: Sequence[Mark], annotations: Sequence[Annotation], runs: Sequence[TrendRun], plot: Plot
) -> SafeString:
    """Return the strip: a row of flags, a row of notes, and a row for the name of the one that is pointed at or has the focus.

    Marks that would overlap are one. Empty without marks and annotations.
    """
    rows = [
        ("flag", [_Sign(mark.at - 0.5, mark.flags, mark_words(mark, runs)) for mark in marks]),
        ("note", _notes(annotations, runs)),
    ]
    drawn = [(look, _merge(signs, plot)) for look, signs in rows if signs]
    if not drawn:
        return SafeString("")
    names = len(drawn) * LANE
    parts = [
        f'<svg class="strip" viewBox="0 0 {WIDTH} {names + LANE}" role="group" aria-label="What changed">'
    ]
    for lane, (look, signs) in enumerate(drawn):
        parts += (_draw(sign, look, lane * LANE, names, plot) for sign in signs)
    return mark_safe("".join([*parts, "</svg>"]))  # noqa: S308


def find_annotation_place(annotation: Annotation, runs: Sequence[TrendRun]) -> float | None:
    """Return an annotation's position among runs, between two of them for a day; None before the first."""
    places = {run.pk: at for at, run in enumerate(runs)}
    if annotation.run_id in places:
        return float(places[annotation.run_id])
    if not runs or annotation.day < runs[0].at.date():
        return None
    return bisect_left([run.at.date() for run in runs], annotation.day) - 0.5


def _notes(annotations: Sequence[Annotation], runs: Sequence[TrendRun]) -> list[_Sign]:
    placed = [(find_annotation_place(each, runs), each) for each in annotations]
    signs = [_Sign(at, "✎", _note_words(each)) for at, each in placed if at is not None]
    return sorted(signs, key=lambda sign: sign.at)


def _note_words(annotation: Annotation) -> str:
    by = annotation.by.get_username() if annotation.by else "somebody"
    run = f"run {annotation.run_id}, " if annotation.run_id else ""
    return f"{show_text(annotation.text)} ({run}{short_day(annotation.day)}, {by})"


def _merge(signs: Sequence[_Sign], plot: Plot) -> Iterator[_Sign]:
    """Yield signs, those that would overlap as one at the place of the first."""
    group: list[_Sign] = []
    for sign in signs:
        if group and plot.x(sign.at) - plot.x(group[0].at) >= APART:
            yield _one(group)
            group = []
        group.append(sign)
    if group:
        yield _one(group)


def _one(group: Sequence[_Sign]) -> _Sign:
    letters = {letter for sign in group for letter in sign.flags}
    flags = "".join(letter for letter in ORDER if letter in letters) or "✎"
    named = [sign.words for sign in group[-MOST_NAMED:][::-1]]
    if len(group) > MOST_NAMED:
        named.append(f"{format_count(len(group) - MOST_NAMED, 'earlier change')}")
    return _Sign(group[0].at, flags, "; ".join(named))


def _draw(sign: _Sign, look: str, top: int, names: int, plot: Plot) -> str:
    x = plot.x(sign.at)
    width = 8 + 8 * len(sign.flags)
    third = WIDTH / 3
    anchor = "start" if x < third else "middle" if x < 2 * third else "end"
    shown = sign.words if len(sign.words) <= LONGEST_SHOWN else f"{sign.words[: LONGEST_SHOWN - 1]}…"
    return (
        f'<g class="sign" tabindex="0" role="img" data-at="{sign.at:g}" transform="translate({x:g})" '
        f'aria-label="{escape(f"{sign.flags}: {sign.words}")}">'
        f'<rect class="{look}" x="{-width / 2:g}" y="{top + 2}" width="{width}" height="{LANE - 5}" rx="2"/>'
        f'<text class="flag-text" y="{top + 15}">{sign.flags}</text>'
        f'<text class="name" y="{names + 15}" text-anchor="{anchor}">{escape(shown)}</text></g>'
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
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{escape(describe_series(series))}">'
    ]
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
    head = f'<svg viewBox="0 0 {SMALL_WIDTH} {SMALL_HEIGHT}" role="img" aria-label="{escape(describe_series(series))}">'
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
