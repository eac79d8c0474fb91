"""Runs of a launch carried to their end in this process, and what waits for them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from django.db import connection
from django.db.models import QuerySet

from runs.execution import batches, lanes, preparation, recording
from runs.execution.reaper import reap
from runs.models import Launch, Run
from runs.models.run import RunState
from runs.queue.disk import room
from runs.queue.retry import retry_when_lost

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.3
OPEN = (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)


Ended = Callable[[int], None]
"""Is told the number of each run as soon as it has ended."""


class Ends:
    """Tells of each run of a launch once, when it has ended."""

    def __init__(self, launch: Launch, ended: Ended | None) -> None:
        self._launch = launch
        self._ended = ended
        self._told: set[int] = set()

    def tell(self) -> None:
        """Tell of those that have ended since the last call."""
        if self._ended is None:
            return
        over = self._launch.runs.exclude(state__in=OPEN).exclude(pk__in=self._told).order_by("pk")
        for run_id in retry_when_lost(lambda: list(over.values_list("pk", flat=True))):
            self._ended(run_id)
            self._told.add(run_id)


def run_here(launch: Launch, ended: Ended | None = None) -> None:
    """Prepare the launch's runs and carry them to their end in threads of this process.

    Ctrl-C cancels them: running agents are stopped, and what is finished stays.
    """
    threads: list[lanes.LaneThread] = []
    ends = Ends(launch, ended)
    told = False
    try:
        while waiting := _open_numbers(launch):
            for run_id in waiting:
                preparation.prepare_run(run_id)
            threads = lanes.start_threads([run_id for run_id in waiting if not batches.waits(run_id)])
            for thread in threads:
                while not thread.over.wait(POLL_SECONDS):
                    ends.tell()
            ends.tell()
            if _open_numbers(launch):
                told = _tell_of_full_disk(told)
                # Another process holds the target's places, or held a trial and was lost.
                time.sleep(POLL_SECONDS)
                retry_when_lost(reap)
    except KeyboardInterrupt:
        # It may have come in the midst of a transaction: what is left to do gets a connection that knows nothing of it.
        connection.close()
        connection.connect()
        for run_id in launch.runs.values_list("pk", flat=True):
            recording.cancel_run(run_id)
        for thread in threads:
            thread.over.wait()
        for run_id in launch.runs.values_list("pk", flat=True):
            batches.drop(run_id)
        raise


def open_runs(launch: Launch) -> QuerySet[Run]:
    """Return the launch's runs to which something may still happen."""
    return launch.runs.filter(state__in=OPEN)


def _tell_of_full_disk(told: bool) -> bool:
    """Say once why nothing begins; return whether it was said."""
    problem = room.problem()
    if problem and not told:
        logger.warning(problem)
    return bool(problem)


def _open_numbers(launch: Launch) -> list[int]:
    """Return the numbers of the launch's open runs, also when the database restarts meanwhile."""
    numbers = open_runs(launch).order_by("pk").values_list("pk", flat=True)
    return retry_when_lost(lambda: list(numbers))


def exit_code(runs: Sequence[Run]) -> int:
    """Return 0 when everything passed, else 1."""
    return 0 if all(run.outcome == "pass" for run in runs) else 1
