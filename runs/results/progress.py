"""Read a run's progress."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db.models import Count, QuerySet, Window
from django.utils import timezone

from evalhub.lib.numbers import format_count
from evaluators.model import Json
from runs.models import Run, Trial
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.results.digests import DigestedTrial
from runs.targets.entries import TargetEntry, find_reference
from scenarios.formats.parsed import PositionedDocument, Positions


def agent_limit(definition: Mapping[str, Json], seconds: float) -> float | None:
    """Return an agent's time limit in seconds: the lower of the trial's and the target's.

    None if the target's limit is a variable, which only workers know, or invalid.
    """
    entry = dict(definition)
    target_limit = (
        TargetEntry(PositionedDocument("target", entry, Positions()), (), entry)
        .fields()
        .get("timeout_seconds")
    )
    if target_limit is None:
        return seconds
    if find_reference(target_limit) or not isinstance(target_limit, int | float | str):
        return None
    try:
        return min(seconds, float(target_limit))
    except ValueError:
        return None


MOST_RUNNING = 20
"""Most running trials listed."""
TRIALS_A_SECOND = 200
"""A page of 1,000 trials changes at most every 5 seconds."""
LATE = 0.8
"""Share of its time limit after which a trial is marked."""


@dataclass(frozen=True)
class AtWork:
    """A running trial."""

    pk: int
    key: str
    index: int
    started: datetime | None
    worker: str
    activity: str
    """The agent's last call, empty if unknown."""
    calls: int | None
    """The agent's number of calls so far; None if unknown."""
    exit_code: int | None
    """The last call's exit code; None while it runs or if unknown."""
    limit: float | None
    """The agent's time limit in seconds; None if unknown or not requested."""

    @property
    def seconds(self) -> float | None:
        """Return its running time in seconds."""
        return (timezone.now() - self.started).total_seconds() if self.started else None

    @property
    def is_late(self) -> bool:
        """Return whether it is close to its time limit."""
        taken = self.seconds
        return taken is not None and self.limit is not None and taken >= LATE * self.limit


@dataclass(frozen=True)
class Progress:
    """A run's counters, remaining time and running trials."""

    trials: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    running: int
    waiting: int
    left_seconds: float | None
    cost_usd: float | None
    now: list[AtWork] = field(default_factory=list)
    """Running trials, the longest first; at most `MOST_RUNNING`."""

    @property
    def done(self) -> int:
        """The number of trials that ended by themselves."""
        return self.passed + self.failed + self.errors

    def queue_sentence(
        self, concurrency: int, target_limit: int | None, project_limit: int | None, workers: int
    ) -> str:
        """Return how many trials are queued, and what limits how many run at once; empty if none is queued."""
        if not self.waiting:
            return ""
        limits = [f"{target_limit} on this target"] if target_limit else []
        limits += [f"{project_limit} in this project"] if project_limit else []
        limited = f" ({', '.join(limits)})" if limits else ""
        online = f", {format_count(workers, 'worker')} online" if workers else ""
        return f"{self.waiting:,} queued: {concurrency} at a time{limited}{online}."

    @property
    def unlisted(self) -> int:
        """Return the number of running trials that are not listed."""
        return self.running - len(self.now)


def progress_of(run: Run, *, limits: bool = False) -> Progress:
    """Return a run's counters and running trials, with their time limits if `limits`.

    One query for an open run, and one more for the limits while trials run; none for a closed run.
    """
    # A row's last two columns are its scenario's limit and the number of running trials.
    rows = list(_running(run.pk)) if run.is_open else []
    allowed = _limits(run, {row[-2] for row in rows}) if limits and rows else {}
    now = [AtWork(*row[:-2], allowed.get(row[-2])) for row in rows]
    return read_progress(run, rows[0][-1] if rows else 0, now)


def read_progress(run: Run, running: int, now: Sequence[AtWork] = ()) -> Progress:
    """Return a run's counters; `running` trials are at work, and `now` of them are listed."""
    return Progress(
        trials=run.trials,
        passed=run.passed,
        failed=run.failed,
        errors=run.errors,
        cancelled=run.cancelled,
        running=running,
        waiting=max(0, run.open - running),
        left_seconds=_estimate_rest(run),
        cost_usd=run.cost_usd,
        now=list(now),
    )


def counted_from(
    progress: Progress, trials: Sequence[DigestedTrial], fresh: Sequence[DigestedTrial] = ()
) -> Progress:
    """Return the progress with the counts of these trials, so that a page's counts and dots agree.

    Fresh trials of a retest count only while they are open.
    """
    n = Counter(trial.state for trial in trials)
    n += Counter(trial.state for trial in fresh if trial.state in ("running", "queued"))
    return replace(
        progress,
        passed=n["pass"],
        failed=n["fail"],
        errors=n["error"],
        cancelled=n["cancelled"],
        running=n["running"],
        waiting=n["queued"],
    )


def progress_key(run: Run, progress: Progress) -> str:
    """Return what a page shows of a run, to ask for changes: the time, the state and the counts."""
    counts = (progress.passed, progress.failed, progress.errors, progress.cancelled, progress.running)
    return f"{int(time.time())}-{run.state}-{run.cancel_requested:d}-{'-'.join(map(str, counts))}"


def is_due(run: Run, progress: Progress, shown: str) -> bool:
    """Return whether a page that shows this is out of date; pages of large runs change less often."""
    at, _, state = shown.partition("-")
    if state == progress_key(run, progress).partition("-")[2]:
        return False
    return not at.isdigit() or time.time() - int(at[:12]) >= run.trials / TRIALS_A_SECOND


def _limits(run: Run, of_scenarios: set[float | None]) -> dict[float | None, float | None]:
    """Return the agents' time limits in seconds, by their scenario's own limit. One query."""
    options = RunOptions.model_validate(run.options)
    definition = (run.target_version or run.target).definition
    return {own: agent_limit(definition, options.agent_seconds(own)) for own in of_scenarios}


def _running(
    run: int,
) -> QuerySet[
    Trial, tuple[int, str, int, datetime | None, str, str, int | None, int | None, float | None, int]
]:
    running = Trial.objects.filter(run=run, state=TrialState.RUNNING).annotate(all=Window(Count("*")))
    of_scenario = "scenario_version__content__limits__timeout_seconds"
    columns = (
        "pk",
        "scenario__key",
        "index",
        "started",
        "worker",
        "activity",
        "calls_so_far",
        "activity_exit_code",
        of_scenario,
        "all",
    )
    return running.order_by("started", "pk").values_list(*columns)[:MOST_RUNNING]


def _estimate_rest(run: Run) -> float | None:
    """Return the estimated remaining seconds at the speed so far; None until a trial has finished."""
    done = run.passed + run.failed + run.errors
    if not done or not run.started:
        return None
    return (timezone.now() - run.started).total_seconds() / done * run.open
