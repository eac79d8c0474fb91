"""The values, changes and runs of a trend in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from evalhub.lib import numbers
from evaluators.statistics.change_points import ChangePoint
from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trend_series import TrendSeries, TrendValue


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


def change_arrow(series: TrendSeries, change: ChangePoint) -> str:
    """Return a change point's size with its direction, such as `▼ 15 pts`."""
    size = show_difference(series, abs(change.after - change.before)).lstrip("+")
    return f"{'▲' if change.after > change.before else '▼'} {size}"


def change_look(series: TrendSeries, change: ChangePoint) -> str:
    """Return the class of a change: is-good, is-bad, or empty where neither direction is better."""
    if series.better not in ("higher", "lower"):
        return ""
    return "is-good" if (change.after > change.before) == (series.better == "higher") else "is-bad"


def summary(series: TrendSeries) -> str:
    """Return a series as the name of its drawing."""
    if not series.values:
        return f"{series.label}, not measured"
    newest = show_value(series, series.values[-1].value)
    changes = numbers.counted(len(series.changes), "change point")
    return f"{series.label}, {numbers.counted(len(series.values), 'run')}, the newest {newest}, {changes}"


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
