"""Waiting until workers have carried a launch; and saying so, and giving up, where no worker is there."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.utils import timezone

from runs.errors import NoWorker
from runs.execution.run_here import POLL_SECONDS, Ended, Ends, open_runs
from runs.models import Launch, Worker
from runs.queue import claims
from runs.queue.worker_registry import workers_online

WAIT_LIMIT_SECONDS = 300.0
"""How long nobody may be there to carry a launch before waiting for it ends."""


def wait_for(
    launch: Launch,
    ended: Ended | None = None,
    *,
    limit_seconds: float | None = None,
    say: Callable[[str], object] | None = None,
) -> None:
    """Wait until workers have carried every run of the launch to its end, however long they take.

    `say` is told once when no worker is there. Raises `NoWorker` when that lasts `limit_seconds`; None is no limit.
    """
    ends = Ends(launch, ended)
    alone = _Alone(launch, limit_seconds, say)
    while open_runs(launch).exists():
        alone.look()
        time.sleep(POLL_SECONDS)
        ends.tell()
    ends.tell()


class _Alone:
    """Counts how long nobody has been there to carry a launch."""

    def __init__(
        self, launch: Launch, limit_seconds: float | None, say: Callable[[str], object] | None
    ) -> None:
        self._launch = launch
        self._limit = limit_seconds
        self._say = self._say_full = say
        self._since: float | None = None

    def look(self) -> None:
        """Look whether somebody is there. Raises `NoWorker` when nobody has been for too long."""
        now = time.monotonic()
        if _is_somebody_there(self._launch):
            self._since = None
            self._tell_of_full_disk()
            return
        if self._since is None:
            self._since = now
        if self._say is not None:
            self._say(self._notice())
            self._say = None
        if self._limit is not None and now - self._since >= self._limit:
            raise NoWorker(self._given_up())

    def _tell_of_full_disk(self) -> None:
        """Say once why the workers that are there begin nothing."""
        problem = workers_online()[1] if self._say_full is not None else ""
        if problem and self._say_full is not None:
            self._say_full(problem)
            self._say_full = None

    def _notice(self) -> str:
        until = "as long as it takes" if self._limit is None else f"{self._limit:g} seconds"
        return f"No worker is running. {_how_to_start()} It is waited for {until}."

    def _given_up(self) -> str:
        numbers = open_runs(self._launch).order_by("pk").values_list("pk", flat=True)
        runs = ", ".join(f"run {number}" for number in numbers)
        return (
            f"No worker has been running for {self._limit:g} seconds, so this command stops waiting. "
            f"Kept, and carried once a worker runs: {runs}. {_how_to_start()}"
        )


def _is_somebody_there(launch: Launch) -> bool:
    """Tell whether a worker is heard of, or holds a trial of the launch though its clock is another one."""
    return Worker.heard(now=timezone.now()).exists() or claims.is_carried(launch)


def _how_to_start() -> str:
    return "'make run' starts evalhub with one." if settings.EMBEDDED else "'make worker' starts one."
