"""A database that is away: one line of the log a minute, and how long a process waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from evalhub.lib.numbers import counted

logger = logging.getLogger(__name__)

LOG_SECONDS = 60.0
"""Least seconds between two lines about it: dozens of threads try again every second."""
MOST_NAMED = 20


class Outage:
    """The failed attempts of this process, and the trials whose results wait to be recorded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._logged = float("-inf")
        self._waiting: set[int] = set()
        self._ending = threading.Event()

    def note(self, error: BaseException) -> None:
        """Log that the database is away, with the trials that wait for it, unless that was logged lately."""
        with self._lock:
            now = self._clock()
            if now - self._logged < LOG_SECONDS:
                return
            self._logged = now
            waiting = sorted(self._waiting)
        reason = " ".join(str(error).split()) or type(error).__name__
        logger.warning("The database is away, retrying: %s.%s", reason.rstrip("."), _name_trials(waiting))

    def add(self, trial_id: int) -> None:
        """Name this trial in the log until `remove`."""
        with self._lock:
            self._waiting.add(trial_id)

    def remove(self, trial_id: int) -> None:
        """Name this trial no more."""
        with self._lock:
            self._waiting.discard(trial_id)

    def end_waiting(self) -> None:
        """Let every thread stop waiting, because the process is asked to end."""
        self._ending.set()

    def may_wait(self) -> bool:
        """Return whether the process goes on: a thread that waits must not outlive its main thread."""
        return not self._ending.is_set() and threading.main_thread().is_alive()


def _name_trials(trials: list[int]) -> str:
    if not trials:
        return ""
    numbers = ", ".join(map(str, trials[:MOST_NAMED])) + (", …" if len(trials) > MOST_NAMED else "")
    return f" Results of {counted(len(trials), 'trial')} wait to be recorded: {numbers}."


outage = Outage()
"""The state for this process."""
