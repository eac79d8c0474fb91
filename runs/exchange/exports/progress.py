"""Show the progress of a launch: a bar with the running trials on a terminal, else a line per finished trial."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from django.db.models import Count, Sum
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from evalhub.lib.numbers import format_count
from runs.db.retry import outage, retry_when_lost
from runs.exchange.exports.console import MARKS, STYLES
from runs.models import Launch, Trial
from runs.models.trial import TrialState

MOST_RUNNING = 8
"""Running trials shown at once."""
BAR_WIDTH = 30
REFRESH_SECONDS = 0.3
CLOCK_SKEW = timedelta(seconds=10)
"""Workers' clocks differ, so a trial may be recorded with an earlier time than one already printed."""


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial as its line shows it."""

    pk: int
    scenario: str
    index: int
    outcome: str
    seconds: float | None
    finished: datetime
    round: int


@dataclass(frozen=True)
class Totals:
    """Trials of a launch by outcome, and what they cost so far."""

    trials: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    cost_usd: float | None

    @property
    def finished(self) -> int:
        return self.passed + self.failed + self.errors + self.cancelled


def read_totals(launch: Launch) -> Totals:
    """Count a launch's trials: the outcomes of first ones, the cost of all. One query."""
    rows = Trial.objects.filter(run__launch=launch).values_list("round", "state", "outcome")
    every = list(rows.annotate(n=Count("pk"), cost=Sum("cost_usd")).order_by())
    counts = [row for later, *row in every if not later]
    by_outcome = {outcome: n for state, outcome, n, _ in counts if state == TrialState.FINISHED}
    costs = [cost for *_, cost in every if cost is not None]
    return Totals(
        sum(n for _, _, n, _ in counts),
        by_outcome.get("pass", 0),
        by_outcome.get("fail", 0),
        by_outcome.get("error", 0),
        sum(n for state, _, n, _ in counts if state == TrialState.CANCELLED),
        sum(costs) if costs else None,
    )


def totals_line(totals: Totals, elapsed_seconds: float) -> str:
    """Return the totals in one line: counts, cost and time left."""
    parts = [f"{totals.finished}/{totals.trials}", f"{totals.passed} passed"]
    parts += [f"{totals.failed} failed"] if totals.failed else []
    parts += [format_count(totals.errors, "error")] if totals.errors else []
    parts += [f"${totals.cost_usd:.2f}"] if totals.cost_usd is not None else []
    left = totals.trials - totals.finished
    if totals.finished and left:
        parts.append(f"{_clock(elapsed_seconds / totals.finished * left)} left")
    return " · ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class ProgressDisplay:
    """Follows a launch from `__enter__` to `__exit__`; call `update` every few tenths of a second."""

    def __init__(
        self, launch: Launch, write: Callable[[str], object], *, terminal: bool, verbose: bool = False
    ) -> None:
        """`write` prints a line; with `terminal`, a bar is drawn on standard error."""
        self._launch = launch
        self._write = write
        self._lines = verbose or not terminal
        self._live = _live() if terminal else None
        self._began = time.monotonic()
        self._updated = 0.0
        self._printed: set[int] = set()
        self._counted = 0
        self._last: datetime | None = None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._show()
        finally:
            if self._live:
                self._live.stop()

    def update(self) -> None:
        """Show what has happened since the last call, at most every `REFRESH_SECONDS`."""
        if time.monotonic() - self._updated >= REFRESH_SECONDS:
            self._show()
            self._updated = time.monotonic()

    def _show(self) -> None:
        totals = retry_when_lost(lambda: read_totals(self._launch), may_wait=outage.may_wait)
        if self._lines:
            for trial in self._newly_finished():
                self._print(trial, totals)
        if self._live:
            line = totals_line(totals, time.monotonic() - self._began)
            bar = ProgressBar(total=max(totals.trials, 1), completed=totals.finished, width=BAR_WIDTH)
            running = [
                Text(f"  {running_trial}", style="dim", overflow="ellipsis", no_wrap=True)
                for running_trial in self._running()
            ]
            self._live.update(Group(bar, Text(line), *running), refresh=True)

    def _print(self, trial: FinishedTrial, totals: Totals) -> None:
        number = f" #{trial.index + 1}" if trial.index else ""
        seconds = f" {trial.seconds:.1f} s" if trial.seconds is not None else ""
        self._counted += not trial.round
        count = "run again" if trial.round else f"{self._counted}/{totals.trials}"
        mark = MARKS[trial.outcome]
        if self._live:
            text = f"{count} {mark} {trial.scenario}{number}{seconds}"
            self._live.console.print(Text(text, style=STYLES[trial.outcome]))
        else:
            self._write(f"{count} {trial.outcome} {trial.scenario}{number}{seconds}")

    def _newly_finished(self) -> Iterator[FinishedTrial]:
        for trial in retry_when_lost(
            lambda: list(_read_finished(self._launch, self._last)), may_wait=outage.may_wait
        ):
            if trial.pk not in self._printed:
                self._printed.add(trial.pk)
                self._last = max(self._last or trial.finished, trial.finished)
                yield trial

    def _running(self) -> list[str]:
        rows = Trial.objects.filter(run__launch=self._launch, state=TrialState.RUNNING).order_by("pk")
        fields = rows.values_list("scenario__key", "index", "activity")
        running = retry_when_lost(lambda: list(fields[:MOST_RUNNING]), may_wait=outage.may_wait)
        return [
            f"{key}{f' #{index + 1}' if index else ''}{f': {activity}' if activity else ''}"
            for key, index, activity in running
        ]


def _live() -> Live:
    return Live(console=Console(file=sys.stderr, highlight=False), transient=True, auto_refresh=False)


def _read_finished(launch: Launch, since: datetime | None) -> Iterator[FinishedTrial]:
    """Yield finished trials in their order; those from shortly before `since` again."""
    trials = Trial.objects.filter(run__launch=launch, state=TrialState.FINISHED, finished__isnull=False)
    if since is not None:
        trials = trials.filter(finished__gte=since - CLOCK_SKEW)
    fields = ("pk", "scenario__key", "index", "outcome", "seconds", "finished", "round")
    for row in trials.order_by("finished", "pk").values_list(*fields):
        yield FinishedTrial(*row)
