"""Waits for workers to execute a launch, and gives up if none is running."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings

from runs.engine.run_here import POLL_SECONDS, Ended, EndNotifier, Polled, open_runs
from runs.errors import NoWorker
from runs.labels import waiting_message
from runs.models import Launch
from runs.workers import claims
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
