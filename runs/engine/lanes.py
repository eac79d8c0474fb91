"""Run lanes, the threads of a worker: each runs trials of one run and moves to another by fair share."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from django.db import DEFAULT_DB_ALIAS, DataError, Error, connections

from runs.db.disk import CannotStore, storage_guard
from runs.db.retry import is_connection_lost, outage, retry_when_lost
from runs.engine import batches, recording, unrecorded
from runs.engine.context import RunContext, load_run
from runs.engine.recording import TrialResult
from runs.engine.trial import execute
from runs.models import Run
from runs.models.run import RunState
from runs.workers import claims, fair_share
from runs.workers.claims import LaneSlot
from runs.workers.heartbeat import heartbeat

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Interval at which free lanes check for work without a wake-up."""


class LanePool:
    """Starts lanes up to a limit while runs can use more.

    Wake-ups only wake the one thread that starts lanes, so they never queue behind trials.
    """

    def __init__(self) -> None:
        self.size = 0
        """How many lanes it may start; 0 before it is started."""
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._starter: threading.Thread | None = None

    def start(self, size: int) -> None:
        """Record what ended processes kept, then start up to this many lanes whenever there is work."""
        # Before this worker takes a tick, which may requeue the trials whose results wait on its disk.
        try:
            record_kept()
        except Error as error:
            _note(error)
        self.size = size
        self._free = threading.Semaphore(size)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="lane")
        self._stopping.clear()
        self._starter = threading.Thread(target=self._start_lanes, name="lane-pool", daemon=True)
        self._starter.start()

    def wake(self) -> None:
        """Check for work now."""
        self._news.set()

    def stop(self, *, wait: bool = True) -> None:
        """Start no more lanes; with `wait`, return when the busy ones have ended."""
        self._stopping.set()
        self.wake()
        if self._starter is None:
            return
        self._starter.join()
        self._threads.shutdown(wait=wait)
        self._starter = None

    def _start_lanes(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            try:
                record_kept()
                self._fill()
            except Error as error:
                _note(error)
            self._news.wait(POLL_SECONDS)
        connections.close_all()

    def _fill(self) -> None:
        """Start lanes until none is free or no run needs one."""
        while (
            not self._stopping.is_set()
            and not storage_guard.blocking_reason()
            and self._free.acquire(blocking=False)
        ):
            slot = None
            try:
                slot = fair_share.next_slot()
            finally:
                if slot is None:
                    self._free.release()
            if slot is None:
                return
            self._threads.submit(self._work, slot)

    def _work(self, slot: LaneSlot) -> None:
        try:
            run_from_slot(slot)
        except Exception as error:
            # Broad because the pool must survive any error in a lane; the trial is requeued when its lease expires.
            if is_connection_lost(error):
                outage.note(error)
            else:
                logger.exception("a lane of run %s ended", slot.run_id)
        finally:
            connections.close_all()
            self._free.release()
            self.wake()


def _note(error: Error) -> None:
    """Note that the database may be away for a minute; the next check finds the remaining work."""
    outage.note(error)
    connections.close_all()


lane_pool = LanePool()
"""The pool of this process."""


UNSTORABLE = (DataError, ValueError, OverflowError, RecursionError)
"""What the database and its driver raise for values that no column takes."""
FAIR_SHARE_SECONDS = 1.0
"""Interval at which a lane checks whether to move to another run."""
KEPT_AFTER_SECONDS = 1.0
"""How long a result waits in memory alone: SQLite is locked for moments, and a server restarts in a second."""

_stopping = threading.Event()


def stop() -> None:
    """Stop every lane of this process after its current trial; none waits for a database that is away."""
    _stopping.set()
    outage.end_waiting()


def run_lane(run_id: int, *, until: float | None = None) -> bool:
    """Run trials of a run, and of its launch's other runs by fair share, until none is left or time is up.

    Does nothing while the run's batch is open. `until` is in seconds of `time.monotonic()`; None means no limit.
    Return True if work was left.
    """
    if batches.must_wait(run_id) or storage_guard.blocking_reason():
        return False
    launch_id = Run.objects.values_list("launch", flat=True).get(pk=run_id)
    slot = fair_share.next_slot(launch_id=launch_id)
    return run_from_slot(slot, launch_id=launch_id, until=until) if slot else False


def run_from_slot(slot: claims.LaneSlot, *, launch_id: int | None = None, until: float | None = None) -> bool:
    """Run trials in a slot, then in slots by fair share, until none is left or time is up.

    `launch_id` limits this to the runs of one launch. Return True if work was left.
    """
    following: claims.LaneSlot | None = slot
    while following is not None:
        slot = following
        try:
            with heartbeat.holding(slot.token, "slot"):
                _drain_run(_LaneSession(slot, launch_id, until))
        except BaseException as error:
            # While the database is away, the slot's lease ends by itself.
            if not is_connection_lost(error):
                claims.release_slot(slot)
            raise
        time_is_over = until is not None and time.monotonic() >= until
        if time_is_over or _stopping.is_set() or storage_guard.blocking_reason():
            claims.release_slot(slot)
            return time_is_over
        following = fair_share.next_slot(launch_id=launch_id, leaving=slot)
    return False


class _LaneSession:
    """A lane's session in one slot."""

    def __init__(self, slot: claims.LaneSlot, launch_id: int | None, until: float | None) -> None:
        self.slot = slot
        self.over = False
        self._launch_id = launch_id
        self._until = until
        self._checked = time.monotonic()
        # The runs of one launch advance together, trial by trial.
        self._one_trial = retry_when_lost(Run.objects.filter(launch__runs=slot.run_id).count) > 1

    @cached_property
    def context(self) -> RunContext:
        """The context of the slot's run. Raises `ProviderError` if its target cannot be used."""
        return load_run(self.slot.run_id)

    def may_go_on(self) -> bool:
        """Return whether another trial may start here."""
        return not (self.over or self._is_stopped() or storage_guard.blocking_reason())

    def is_over(self) -> bool:
        """Return whether the current trial is the last one here."""
        self.over = (
            self.over
            or self._one_trial
            or self._is_stopped()
            or (self._until is not None and time.monotonic() >= self._until)
        )
        self.over = self.over or self._should_give_way()
        return self.over

    def _is_stopped(self) -> bool:
        return heartbeat.stopped(self.slot.token) or _stopping.is_set()

    def _should_give_way(self) -> bool:
        if time.monotonic() - self._checked < FAIR_SHARE_SECONDS:
            return False
        self._checked = time.monotonic()
        if storage_guard.blocking_reason():
            return True
        try:
            return fair_share.should_give_way(self.slot, launch_id=self._launch_id)
        except Error as error:
            # Asked before a result is recorded, which must not wait for an answer.
            if not is_connection_lost(error):
                raise
            outage.note(error)
            connections[DEFAULT_DB_ALIAS].close()
            return True


def _drain_run(session: _LaneSession) -> None:
    """Run trials of a slot's run until none is left or the session is over."""
    while session.may_go_on():
        claim = claims.claim_trial(session.slot.run_id)
        if claim is None:
            return
        while claim is not None:
            claim = run_trial(claim, lambda: session.context, is_over=session.is_over)


def run_trial(
    claim: claims.Claim, load_context: Callable[[], RunContext], *, is_over: Callable[[], bool]
) -> claims.Claim | None:
    """Run and record a claimed trial; return the claim of the next one unless the session is over.

    Recording and claiming share a transaction to save one. None doesn't mean that no work is left.
    """
    with heartbeat.holding(claim.token, "trial"):
        try:
            result = execute(
                claim,
                load_context,
                stopped=lambda: heartbeat.stopped(claim.token),
                watch=lambda read_calls: heartbeat.watch(claim.trial_id, claim.token, read_calls),
            )
        except CannotStore as problem:
            storage_guard.note(problem)
            return requeue_or_record_error(claim, problem, is_over=is_over)
        return _record(claim, result, is_over=is_over)


def requeue_or_record_error(
    claim: claims.Claim, problem: CannotStore, *, is_over: Callable[[], bool]
) -> claims.Claim | None:
    """Requeue a trial that can't be stored; record it as an error after too many times."""
    if claims.requeue_trial(claim):
        logger.warning("trial %s is requeued: %s", claim.trial_id, problem)
        return None
    error = f"{problem} The trial was tried {claims.MOST_TRIES} times."
    result = TrialResult(outcome="error", error=error, error_kind=problem.kind)
    return _record(claim, result, is_over=is_over)


def record_kept() -> None:
    """Record the results that ended processes kept because the database was away. Raises its error if it still is."""
    for path in unrecorded.files_left():
        with unrecorded.take_file(path) as stored:
            if stored is not None:
                logger.warning("trial %s: its result was kept in %s", stored.claim.trial_id, path)
                _store(stored.claim, stored.result, is_over=lambda: True, may_wait=lambda: False)


def _record(claim: claims.Claim, result: TrialResult, *, is_over: Callable[[], bool]) -> claims.Claim | None:
    """Record a result, and wait as long as the database is away; meanwhile the result is on disk."""
    waiting = unrecorded.WaitingResult(claim, result)

    began = time.monotonic()

    def may_wait() -> bool:
        goes_on = outage.may_wait()
        if not goes_on or time.monotonic() - began >= KEPT_AFTER_SECONDS:
            waiting.keep()
        return goes_on

    try:
        following = _store(claim, result, is_over=is_over, may_wait=may_wait)
    except Error as error:
        if not (waiting.is_kept and is_connection_lost(error)):
            waiting.drop()
        raise
    waiting.drop()
    return following


def _store(
    claim: claims.Claim, result: TrialResult, *, is_over: Callable[[], bool], may_wait: Callable[[], bool]
) -> claims.Claim | None:
    """Store a result, or that it can't be stored; return the claim of the next trial unless the session is over."""
    try:
        if is_over():
            recorded, following = recording.record_result(claim, result, may_wait=may_wait), None
        else:
            recorded, following = recording.record_and_claim(claim, result, may_wait=may_wait)
    except UNSTORABLE as error:
        # Otherwise the trial would run again and again, because each lease would expire.
        logger.exception("trial %s: its result can't be stored", claim.trial_id)
        sentence = f"The result can't be stored ({type(error).__name__}). The worker's log has the details; report them."
        recorded, following = (
            recording.record_result(
                claim, TrialResult(outcome="error", error=sentence, error_kind="internal"), may_wait=may_wait
            ),
            None,
        )
    if not recorded:
        logger.warning("trial %s: the claim was lost, its result is discarded", claim.trial_id)
    return following


class LaneThread(threading.Thread):
    """A lane in its own thread.

    Wait for `over` instead of `join`: Python marks a thread as ended when Ctrl-C interrupts its `join`.
    """

    _begun = _given_up = False

    def __init__(self, run_id: int, name: str) -> None:
        super().__init__(name=name)
        self.over = threading.Event()
        self._run_id = run_id
        self._lock = threading.Lock()

    def wait_or_give_up(self, seconds: float) -> None:
        """Wait at most these seconds for the end of a lane that has begun; one that hasn't never begins.

        Ctrl-C may interrupt `start`, and then nobody knows whether the thread runs.
        """
        with self._lock:
            self._given_up = True
            begun = self._begun
        if begun:
            self.over.wait(seconds)

    def run(self) -> None:
        """Run trials until none is left."""
        with self._lock:
            self._begun = not self._given_up
        if not self._begun:
            return
        try:
            run_lane(self._run_id)
        finally:
            connections.close_all()
            self.over.set()


def lane_threads(run_ids: list[int]) -> list[LaneThread]:
    """Return a thread for each lane of prepared runs, not started."""
    return [
        LaneThread(run.pk, f"lane-{run.pk}-{n}")
        for run in Run.objects.filter(pk__in=run_ids, state=RunState.RUNNING)
        for n in range(min(run.concurrency, run.trials))
    ]
