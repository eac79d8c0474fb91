"""A lane: takes a place in a run, carries one trial after another, and gives the place back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import connections
from django.db.models import F

from runs import recording
from runs.execution import execute
from runs.models import Run
from runs.models.run import RunState
from runs.queue import claims
from runs.queue.disk import DiskFull, room
from runs.queue.heartbeat import heartbeat
from runs.trial_result import TrialResult
from runs.trials import batching

logger = logging.getLogger(__name__)

SLICE_SECONDS = 60.0
"""How long a lane works before it lets others have its thread; it asks for another wake-up then."""
TRIES_ON_FULL_DISK = claims.MOST_PUT_BACK + 1

_stopping = threading.Event()


def stop() -> None:
    """Let every lane of this process end after its present trial."""
    _stopping.set()


def work(run_id: int, *, until: float | None = None) -> bool:
    """Carry trials of a run, and of its launch's other runs in turn, until none is left or time is over.

    A run whose batch has not ended is only looked at. `until` is in seconds of `time.monotonic()`; None works on
    to the end. Returns True when work was left.
    """
    run = Run.objects.select_related("target").get(pk=run_id)
    if batching.waits(run_id):
        return False
    while not room.problem():
        place = claims.take_place(run, run.target)
        if place is None:
            return False
        try:
            with heartbeat.holding(place.token, "place"):
                several = _work_in(place, run, until)
        finally:
            claims.release_place(place)
        if _stopping.is_set():
            return False
        if until is not None and time.monotonic() >= until:
            return True
        following = _next_run(run) if several else None
        if following is None:
            return False
        run = following
    return False


def _work_in(place: claims.Place, run: Run, until: float | None) -> bool:
    """Carry trials in one place; True when the launch's next run should have its turn."""
    several = run.launch.runs.count() > 1

    def is_stopped() -> bool:
        return heartbeat.stopped(place.token) or _stopping.is_set()

    def is_over() -> bool:
        return (
            several
            or is_stopped()
            or bool(room.problem())
            or (until is not None and time.monotonic() >= until)
        )

    while not is_stopped():
        claim = claims.claim_trial(run.pk)
        if claim is None:
            return several
        while claim is not None:
            claim = carry(claim, is_over=is_over)
        if is_over():
            return several
    return False


def _next_run(run: Run) -> Run | None:
    """Return the launch's run that has started the smallest share of its trials and has some left."""
    left = F("open") * 1.0 / F("trials")
    waiting = claims.runs_with_work().filter(launch=run.launch_id).select_related("target")
    return waiting.order_by(left.desc(), "pk").first()


def carry(claim: claims.Claim, *, is_over: Callable[[], bool]) -> claims.Claim | None:
    """Carry a claimed trial from its workspace to its record; return the next one's claim unless it is over.

    Both are one transaction, for each costs as much as what it writes. None says nothing of what is left to do.
    """
    with heartbeat.holding(claim.token, "trial"):
        try:
            result = execute(
                claim,
                stopped=lambda: heartbeat.stopped(claim.token),
                watch=lambda look: heartbeat.watch(claim.trial_id, claim.token, look),
            )
        except DiskFull as full:
            room.note(full)
            return return_or_fail(claim, full, is_over=is_over)
        return _record(claim, result, is_over=is_over)


def return_or_fail(
    claim: claims.Claim, full: DiskFull, *, is_over: Callable[[], bool]
) -> claims.Claim | None:
    """Return a trial that met a full disk to the queue; record it as an error where that happened too often."""
    if claims.put_back(claim):
        logger.warning("trial %s goes back: %s", claim.trial_id, full)
        return None
    error = f"{full} The trial was tried {TRIES_ON_FULL_DISK} times."
    return _record(claim, TrialResult(outcome="error", error=error, error_kind="disk"), is_over=is_over)


def _record(claim: claims.Claim, result: TrialResult, *, is_over: Callable[[], bool]) -> claims.Claim | None:
    if is_over():
        recorded, following = recording.record(claim, result), None
    else:
        recorded, following = recording.record_and_claim(claim, result)
    if not recorded:
        logger.warning("trial %s: the claim was lost, its result is thrown away", claim.trial_id)
    return following


class LaneThread(threading.Thread):
    """A lane in a thread of its own.

    `over` is waited for in place of `join`: Python takes a thread for ended when Ctrl-C interrupts its `join`.
    """

    def __init__(self, run_id: int, name: str) -> None:
        super().__init__(name=name)
        self.over = threading.Event()
        self._run_id = run_id

    def run(self) -> None:
        """Work until nothing is left of the run."""
        try:
            work(self._run_id)
        finally:
            connections.close_all()
            self.over.set()


def start_threads(run_ids: list[int]) -> list[LaneThread]:
    """Start the lanes of prepared runs in threads of this process and return these."""
    threads = [
        LaneThread(run.pk, f"lane-{run.pk}-{n}")
        for run in Run.objects.filter(pk__in=run_ids, state=RunState.RUNNING)
        for n in range(min(run.concurrency, run.trials))
    ]
    for thread in threads:
        thread.start()
    return threads
