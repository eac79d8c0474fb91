"""Keep a worker working while its broker is away, and reconnect it.

See docs/decisions/0014-workers-outlive-their-broker.md.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery import bootsteps
from django.conf import settings
from django.db import connections

logger = logging.getLogger(__name__)


class Poller:
    """Asks whether the broker answers; while it doesn't, looks for work in the database and does it in own threads."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._waiting: set[tuple[Any, ...]] = set()
        self._is_away = False
        self._threads = ThreadPoolExecutor(settings.TASK_THREADS, thread_name_prefix="polled")
        self._thread = threading.Thread(target=self._poll, name="poller", daemon=True)

    def start(self) -> None:
        """Start to poll."""
        self._thread.start()

    def stop(self, *, wait: bool) -> None:
        """Look for no more work; with `wait`, return when what was begun has ended."""
        self._ending.set()
        self._threads.shutdown(wait=wait, cancel_futures=True)

    def _poll(self) -> None:
        # Imported here because a worker needs no page before it starts.
        from evalhub.health import broker_problem

        # Interval at which the broker is asked whether it answers; that of beat's ticks.
        while not self._ending.wait(5.0):
            problem = broker_problem()
            if bool(problem) != self._is_away:
                self._is_away = bool(problem)
                logger.warning(
                    "%s Work is found by polling until it does."
                    if problem
                    else "The broker answers again.%s",
                    problem,
                )
            if problem:
                self.submit("tick")

    def submit(self, task: str, *args: int) -> None:
        """Do a task in a thread, unless the same one waits already."""
        key = (task, *args)
        with self._lock:
            if key in self._waiting or self._ending.is_set():
                return
            self._waiting.add(key)
        self._threads.submit(self._do, key)

    def _do(self, key: tuple[Any, ...]) -> None:
        from runs.workers import wakeups

        with self._lock:
            self._waiting.discard(key)
        task, *args = key
        try:
            with wakeups.carried_by(self.submit):
                self._app.tasks[f"runs.tasks.{task}"](*args)
        except Exception:
            # Broad because the next poll asks for it again, as after a task of Celery.
            logger.exception("%s%s failed", task, tuple(args))
        finally:
            connections.close_all()


class Polling(bootsteps.StartStopStep):
    """Polls beside Celery's consumer, which waits for the broker."""

    requires = ("celery.worker.components:Pool",)

    def include_if(self, parent: Any) -> bool:
        """Poll only in workers that do short tasks."""
        return parent.app.conf.task_default_queue in parent.app.amqp.queues.consume_from

    def start(self, parent: Any) -> None:
        self._poller = Poller(parent.app)
        self._poller.start()

    def stop(self, parent: Any) -> None:
        """Wait for the tasks that are running now, as for Celery's own."""
        self._poller.stop(wait=True)

    def terminate(self, parent: Any) -> None:
        self._poller.stop(wait=False)


class Reconnecting(bootsteps.StartStopStep):
    """Turns kombu's AttributeError on a connection that Redis closed into a connection error, after which Celery connects again."""

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        parent.loop = _with_connection_errors(parent.loop)


def _with_connection_errors(loop: Callable[..., object]) -> Callable[..., object]:
    def run(*args: Any) -> object:
        try:
            return loop(*args)
        except AttributeError as error:
            if not _is_raised_by_libraries(error):
                raise
            logger.warning("the broker closed a connection that was in use: %s", error)
            raise ConnectionResetError(f"The broker closed the connection: {error}") from error

    return run


def _is_raised_by_libraries(error: AttributeError) -> bool:
    """Return whether the error arose in the broker's client, and not in code of ours or of Celery."""
    step = error.__traceback__
    name = ""
    while step is not None:
        name = str(step.tb_frame.f_globals.get("__name__", ""))
        step = step.tb_next
    return name.partition(".")[0] in ("kombu", "redis", "valkey")
