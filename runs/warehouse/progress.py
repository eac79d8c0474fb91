"""How far a run is."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils import timezone

from runs.models import Run, Trial
from runs.models.trial import TrialState

MOST_RUNNING = 20


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    trials: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    running: int
    waiting: int
    left_seconds: float | None
    cost_usd: float | None
    now: list[Trial] = field(default_factory=list)

    @property
    def done(self) -> int:
        return self.trials - self.running - self.waiting


def progress_of(run: Run) -> Progress:
    """Return a run's counters and what runs now. One query while it is open, none after."""
    running = _running(run) if run.is_open else []
    return Progress(
        trials=run.trials,
        passed=run.passed,
        failed=run.failed,
        errors=run.errors,
        cancelled=run.cancelled,
        running=len(running),
        waiting=max(0, run.open - len(running)),
        left_seconds=_left(run),
        cost_usd=run.cost_usd,
        now=running[:MOST_RUNNING],
    )


def _running(run: Run) -> list[Trial]:
    return list(
        Trial.objects.filter(run=run, state=TrialState.RUNNING)
        .select_related("scenario")
        .only("index", "started", "scenario__key", "run_id", "starts")[: MOST_RUNNING + 1]
    )


def _left(run: Run) -> float | None:
    """Return the seconds that the open trials will take at the speed so far; None before the first ended."""
    done = run.passed + run.failed + run.errors
    if not done or not run.started:
        return None
    return (timezone.now() - run.started).total_seconds() / done * run.open
