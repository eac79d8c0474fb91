"""Say in one sentence when a suite's measures changed last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evaluators.statistics.measure_change import DECIDED
from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trend_series import TrendSeries
from runs.compare.trends_page.words import short_day, show_value
from runs.models import Change, Measure


class LastChange(NamedTuple):
    """The newest change of a measure."""

    run: TrendRun
    """The first run after it."""
    words: str
    """What changed how and with what; the day and the run follow."""
    until: TrendRun | None
    """The first later run without the verdict; None while it lasts, or for a change point."""

    @property
    def day(self) -> str:
        return short_day(self.run.at)


class _Change(NamedTuple):
    at: int
    """Position of the first run after the change."""
    series: TrendSeries
    before: float
    after: float
    until: TrendRun | None = None


def last_change(
    suite: str,
    series: Sequence[TrendSeries],
    measures: Sequence[Measure],
    runs: Sequence[TrendRun],
    line: Sequence[TrendRun],
    marks: Sequence[Mark],
) -> LastChange | None:
    """Return the newest change of these measures, by stored verdicts and change points; None if there was none.

    `line` has the runs whose verdicts count. One query.
    """
    by_key = {measure.pk: trend for measure in measures for trend in series if trend.name == str(measure)}
    # Of changes at one run, the first measure's; a verdict before a change point.
    changes = [*_verdicts(by_key, runs, line), *_change_points(series)]
    if not changes:
        return None
    newest = max(changes, key=lambda each: each.at)
    words = {mark.at: mark.words for mark in marks}.get(newest.at, "")
    return LastChange(runs[newest.at], _sentence(suite, newest, words), newest.until)


def _change_points(series: Sequence[TrendSeries]) -> list[_Change]:
    return [
        _Change(change.at, trend, change.before, change.after) for trend in series for change in trend.changes
    ]


def _verdicts(
    by_key: Mapping[int, TrendSeries], runs: Sequence[TrendRun], line: Sequence[TrendRun]
) -> list[_Change]:
    """Return the first run of each measure's newest streak of one verdict."""
    rows = Change.objects.filter(
        run__in=[run.pk for run in line], measure__in=by_key, scenario=None, verdict__in=DECIDED
    )
    places = {run.pk: at for at, run in enumerate(runs)}
    decided = {
        (measure, run): (verdict, before, after)
        for measure, run, verdict, before, after in rows.values_list(
            "measure_id", "run_id", "verdict", "before", "after"
        )
    }
    changes = []
    for key, series in by_key.items():
        verdicts = [(run, decided.get((key, run.pk))) for run in line]
        newest: _Change | None = None
        previous = ""
        for run, row in verdicts:
            verdict = row[0] if row else ""
            if row and verdict != previous and row[1] is not None and row[2] is not None:
                newest = _Change(places[run.pk], series, row[1], row[2])
            elif newest and previous and not verdict:
                newest = newest._replace(until=run)
            previous = verdict
        changes += [newest] if newest else []
    return changes


def _sentence(suite: str, change: _Change, marked: str) -> str:
    series = change.series
    moved = "rose" if change.after > change.before else "fell"
    if series.is_share:
        size = f"{abs(change.after - change.before) * 100:.0f} points"
    else:
        size = f"from {show_value(series, change.before)} to {show_value(series, change.after)}"
    # A tool's version mostly names the tool.
    reason = f" with {marked.removeprefix('tool ')}" if marked else ""
    return f"{series.label} of {suite} {moved} {size}{reason}"
