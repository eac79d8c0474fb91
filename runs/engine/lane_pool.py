"""The lanes of a worker process: threads that run trials by fair share."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import Error, connections

from runs.db.disk import storage_guard
from runs.db.outage import outage
from runs.db.retry import is_connection_lost
from runs.engine import lanes
from runs.workers import fair_share
from runs.workers.claims import LaneSlot

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
            lanes.record_kept()
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
                lanes.record_kept()
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
            lanes.run_from_slot(slot)
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
