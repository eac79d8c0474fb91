"""Execute the runs of a launch in this process, or wait for workers and give up if none is running."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from runs.db.disk import storage_guard
from runs.db.retry import outage, retry_when_lost
from runs.engine import batches, lanes, preparation, recording
from runs.engine.reaper import reap
from runs.errors import NoWorker
from runs.labels import waiting_message
from runs.models import Launch, Run
from runs.models.run import OPEN
from runs.workers import claims
from runs.workers.heartbeat import heartbeat
from runs.workers.labels import labels_online, with_labels
from runs.workers.worker_registry import workers_online

WAIT_LIMIT_SECONDS = 300.0
"""Time without a worker after which waiting ends."""


def wait_for(
    launch: Launch,
    ended: Ended | None = None,
    *,
    limit_seconds: float | None = None,
    notify: Callable[[str], object] | None = None,
    polled: Polled | None = None,
) -> None:
    """Wait until workers have finished every run of the launch.

    Calls `notify` once if no worker is running. Raises `NoWorker` after `limit_seconds` without one; None: no limit.
    """
    notifier = EndNotifier(launch, ended, polled)
    watch = _WorkerWatch(launch, limit_seconds, notify)
    while open_runs(launch).exists():
        watch.check()
        time.sleep(POLL_SECONDS)
        notifier.notify()
    notifier.notify()


class _WorkerWatch:
    """Measures how long no worker has been running."""

    def __init__(
        self, launch: Launch, limit_seconds: float | None, notify: Callable[[str], object] | None
    ) -> None:
        self._launch = launch
        self._limit = limit_seconds
        self._notify = self._notify_problem = notify
        self._since: float | None = None

    def check(self) -> None:
        """Check for a worker. Raises `NoWorker` after too long without one."""
        now = time.monotonic()
        if _has_worker(self._launch):
            self._since = None
            self._notify_of_problem()
            return
        if self._since is None:
            self._since = now
        if self._notify is not None:
            limit = "without a limit" if self._limit is None else f"for {self._limit:g} seconds"
            self._notify(f"{self._why()} Waiting {limit}.")
            self._notify = None
        if self._limit is not None and now - self._since >= self._limit:
            raise NoWorker(self._given_up())

    def _notify_of_problem(self) -> None:
        """Report once why the running workers start no trials."""
        problem = workers_online()[1] if self._notify_problem is not None else ""
        if problem and self._notify_problem is not None:
            self._notify_problem(problem)
            self._notify_problem = None

    def _why(self) -> str:
        """Return what the launch waits for: workers with labels, or any."""
        return (
            " ".join(map(waiting_message, self._required_labels()))
            or f"No worker is running. {_how_to_start()}"
        )

    def _required_labels(self) -> list[list[str]]:
        """Return each set of labels that open runs of the launch need, the empty one left out."""
        rows = open_runs(self._launch).values_list("target__labels", flat=True)
        return [list(labels) for labels in dict.fromkeys(map(tuple, rows)) if labels]

    def _given_up(self) -> str:
        numbers = open_runs(self._launch).order_by("pk").values_list("pk", flat=True)
        runs = ", ".join(f"run {number}" for number in numbers)
        able = " with the labels" if self._required_labels() else ""
        return (
            f"No worker{able} has been running for {self._limit:g} seconds, so this command stops waiting. "
            f"The runs stay queued for the next worker: {runs}. {_how_to_start()}"
        )


def _has_worker(launch: Launch) -> bool:
    """Return whether a worker for one of the launch's runs is online, or has a trial of it despite a wrong clock."""
    online = labels_online()
    required = list(open_runs(launch).values_list("target__labels", flat=True))
    if not required or any(with_labels(labels, online) for labels in required):
        return True
    return claims.has_active_claims(launch)


def _how_to_start() -> str:
    return "'make run' starts evalhub with one." if settings.EMBEDDED else "'make worker' starts one."


logger = logging.getLogger(__name__)

POLL_SECONDS = 0.3
SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What interrupts a command: CI services send SIGINT, then SIGTERM, then a kill."""
STOP_SECONDS = 2.5
"""How long running trials have to end before the results of the finished ones are written."""


Ended = Callable[[int], None]
"""Called with the number of each run when it has ended."""
Polled = Callable[[], object]
"""Called every few tenths of a second while a launch runs."""


class EndNotifier:
    """Calls `ended` once for each run of a launch that has ended, and `polled` each time it looks."""

    def __init__(self, launch: Launch, ended: Ended | None, polled: Polled | None = None) -> None:
        self._launch = launch
        self._ended = ended
        self._polled = polled
        self._notified: set[int] = set()

    def notify(self) -> None:
        """Report the runs that have ended since the last call."""
        if self._polled is not None:
            self._polled()
        if self._ended is None:
            return
        over = self._launch.runs.exclude(state__in=OPEN).exclude(pk__in=self._notified).order_by("pk")
        for run_id in retry_when_lost(
            lambda: list(over.values_list("pk", flat=True)), may_wait=outage.may_wait
        ):
            self._ended(run_id)
            self._notified.add(run_id)


def run_here(launch: Launch, ended: Ended | None = None, polled: Polled | None = None) -> None:
    """Prepare and execute the launch's runs in threads of this process.

    No worker takes them meanwhile. Ctrl-C cancels them: running agents stop, finished trials are kept, and the runs are
    closed within a few seconds.
    """
    launches = Launch.objects.filter(pk=launch.pk)
    retry_when_lost(lambda: claims.hold_launches(launches))
    try:
        with heartbeat.holding(claims.own_hold(), "launch"):
            _run_here(launch, ended, polled)
    finally:
        retry_when_lost(lambda: claims.let_go(launches))


def _run_here(launch: Launch, ended: Ended | None, polled: Polled | None) -> None:
    threads: list[lanes.LaneThread] = []
    notifier = EndNotifier(launch, ended, polled)
    warned = False
    try:
        lanes.record_kept()
        while waiting := _open_numbers(launch):
            for run_id in waiting:
                preparation.prepare_run(run_id)
            # Known before they start: Ctrl-C at any moment waits for them.
            threads = lanes.lane_threads([run_id for run_id in waiting if not batches.must_wait(run_id)])
            _run_lanes(threads, notifier)
            if _open_numbers(launch):
                warned = _warn_of_problem(warned)
                # Another process uses the target's slots, or lost a trial.
                time.sleep(POLL_SECONDS)
                retry_when_lost(reap, may_wait=outage.may_wait)
    except KeyboardInterrupt:
        # The interrupt may have come within a transaction: continue on a fresh connection.
        connection.close()
        connection.connect()
        _cancel(launch, threads)
        notifier.notify()
        for run_id in launch.runs.values_list("pk", flat=True):
            batches.drop(run_id)
        raise


def _cancel(launch: Launch, threads: Sequence[lanes.LaneThread]) -> None:
    """Cancel the launch's runs, and close them after `STOP_SECONDS` even if an agent hasn't ended by then."""
    run_ids = list(launch.runs.values_list("pk", flat=True))
    for run_id in run_ids:
        recording.cancel_run(run_id)
    until = time.monotonic() + STOP_SECONDS
    for thread in threads:
        thread.wait_or_give_up(max(0.0, until - time.monotonic()))
    for run_id in run_ids:
        recording.cancel_rest(run_id)


def _run_lanes(threads: Sequence[lanes.LaneThread], notifier: EndNotifier) -> None:
    """Start all lanes, and wait for their end."""
    for thread in threads:
        thread.start()
    for thread in threads:
        while not thread.over.wait(POLL_SECONDS):
            notifier.notify()
    notifier.notify()


def open_runs(launch: Launch) -> QuerySet[Run]:
    """Return the launch's open runs."""
    return launch.runs.filter(state__in=OPEN)


def _warn_of_problem(warned: bool) -> bool:
    """Log once why no trial starts; return whether it was logged."""
    problem = storage_guard.blocking_reason()
    if problem and not warned:
        logger.warning(problem)
    return bool(problem)


def _open_numbers(launch: Launch) -> list[int]:
    """Return the numbers of the launch's open runs; waits while the database is away."""
    numbers = open_runs(launch).order_by("pk").values_list("pk", flat=True)
    return retry_when_lost(lambda: list(numbers), may_wait=outage.may_wait)


def exit_code(runs: Sequence[Run]) -> int:
    """Return 0 when everything passed, else 1."""
    return 0 if all(run.outcome == "pass" for run in runs) else 1


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code_of(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code of shells for a program that the signal ended."""
    return 128 + (interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the first SIGINT or SIGTERM, and ignore further ones from then on.

    A second one would end the command before it has written and printed its results. Elsewhere than in the main
    thread, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def interrupt(number: int, frame: FrameType | None) -> None:
        for signal_number in SIGNALS:
            signal.signal(signal_number, signal.SIG_IGN)
        raise Interrupted(number)

    for number in SIGNALS:
        # A command in the background of a shell ignores SIGINT.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)
