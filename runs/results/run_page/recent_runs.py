"""Draw a list's newest runs in three figures: pass rate, first-try success, cost per passed trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from django.utils.safestring import SafeString

from evalhub.lib import numbers
from evalhub.web.column_chart import Column, draw_columns
from evaluators.statistics.descriptive import Z_95
from runs.results.rates import Rate, run_rate
from runs.results.run_list import RowBaseline, RunRow, Spread

MOST = 20
FEWEST = 2
"""Fewest runs for a figure: a table shows one number better."""


class Recent(NamedTuple):
    """One run's values."""

    run: int
    at: datetime | None
    rate: Rate
    cost_usd: float | None
    first_try: Spread | None
    regressed: bool


class Figure(NamedTuple):
    """One figure, ready for the page."""

    title: str
    now: str
    drawing: SafeString


class Figures(NamedTuple):
    """The figures of several runs, with their baseline as a dotted line."""

    runs: int
    baseline: int | None
    drawn: tuple[Figure, ...]

    @property
    def has_costs(self) -> bool:
        """Return whether any cost is known."""
        return bool(self.drawn[-1].drawing)


def recent_figures(rows: Sequence[RunRow]) -> Figures | None:
    """Return the figures of the newest runs of a line, with its newest baseline; None for fewer than two or several lines.

    `rows` are a list's, newest first.
    """
    finished = [row for row in rows if row.run.passed + row.run.failed and not row.run.is_open][:MOST]
    if (
        len(finished) < FEWEST
        or len({(row.run.suite, row.run.target, row.run.model) for row in finished}) > 1
    ):
        return None
    baseline = next((row.baseline for row in finished if row.baseline), None)
    return drawn_figures(tuple([_recent(row) for row in reversed(finished)]), baseline)


def _recent(row: RunRow) -> Recent:
    run = row.run
    # Without the trials of a retest, which say nothing of a success's cost.
    cost = None if run.cost_per_success is None else run.cost_per_success * run.passed
    return Recent(run.id, run.finished, row.rate, cost, row.first_try, row.verdict == "regressed")


def drawn_figures(runs: tuple[Recent, ...], baseline: RowBaseline | None) -> Figures:
    """Return the figures of runs, oldest first, with a dotted baseline if there is one."""
    passes = run_rate(baseline) if baseline else Rate(0, 0)
    cost = _cost(baseline.cost_usd, passes) if baseline else None
    first_try = baseline.first_try.mean if baseline and baseline.first_try else None
    figures = (
        _figure(
            "Pass rate",
            [_pass_rate_column(run) for run in runs],
            passes.share if passes.n else None,
            _percent,
            1.0,
        ),
        _figure("First-try success", [_first_try(run) for run in runs], first_try, _percent, 1.0),
        _figure("Cost per passed trial", [_cost_per_pass(run) for run in runs], cost, numbers.money),
    )
    return Figures(len(runs), baseline.pk if baseline else None, figures)


def _figure(
    title: str,
    drawn: list[Column],
    baseline: float | None,
    show: Callable[[float], str],
    end: float | None = None,
) -> Figure:
    known = [each.value for each in drawn if each.value is not None]
    if not known:
        return Figure(title, numbers.UNMEASURED, SafeString(""))
    end = end or numbers.round_end(1.1 * max(known if baseline is None else [*known, baseline]))
    newest = drawn[-1].value
    now = numbers.UNMEASURED if newest is None else show(newest)
    return Figure(title, now, draw_columns(drawn, end=end, baseline=baseline, show=show))


def _percent(share: float) -> str:
    return numbers.percent(share)


def _pass_rate_column(run: Recent) -> Column:
    rate = run.rate
    return Column(run.run, run.at, rate.share, rate.low, rate.high, run.regressed)


def _first_try(run: Recent) -> Column:
    if run.first_try is None:
        return Column(run.run, run.at, None)
    n, mean, m2 = run.first_try
    half = Z_95 * math.sqrt(m2 / (n - 1) / n) if n > 1 else None
    ends = (None, None) if half is None else (max(0.0, mean - half), min(1.0, mean + half))
    return Column(run.run, run.at, mean, *ends)


def _cost(cost_usd: float | None, rate: Rate) -> float | None:
    return None if cost_usd is None or not rate.passed else cost_usd / rate.passed


def _cost_per_pass(run: Recent) -> Column:
    """Return the cost per passed trial; its interval follows from the pass rate."""
    rate = Rate(run.rate.passed, run.rate.n)
    value = _cost(run.cost_usd, rate)
    if value is None or run.cost_usd is None:
        return Column(run.run, run.at, None)
    return Column(
        run.run, run.at, value, run.cost_usd / (rate.n * rate.high), run.cost_usd / (rate.n * rate.low)
    )
