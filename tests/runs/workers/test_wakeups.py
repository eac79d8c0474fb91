"""Wake-ups where no broker answers, and how many are sent."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
from celery import Celery
from django.utils import timezone
from kombu.exceptions import OperationalError

from evalhub.celery import LANES, app
from runs.labels import celery_queue
from runs.models import Target, Trial, Worker
from runs.models.trial import TrialState
from runs.workers import wakeups
from tests.runs.carrying import launch, running

elsewhere = Celery("elsewhere", set_as_current=False)
"""evalhub's application with a broker of a test."""

in_memory = Celery("in-memory", set_as_current=False, broker="memory://")
"""evalhub's application with a broker in memory."""


class Silent:
    """Listens, and ends every connection at once."""

    def __init__(self, path: Path) -> None:
        self.url = f"redis+socket://{path}?virtual_host=0"
        self.asked = 0
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen()
        self.thread = Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                asking, _ = self.listening.accept()
                # Counted before the connection closes, when the asker checks the count.
                self.asked += 1
                asking.close()

    def stop(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listening.close()


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Silent]:
    started = Silent(tmp_path / "broker")
    yield started
    started.stop()


def test_a_broker_that_is_away_is_asked_once(silent: Silent) -> None:
    """Asked again and again it would hold up a page for six seconds; the next tick sends the wake-up anyhow."""
    with app.connection_for_write(silent.url) as connection, pytest.raises(OperationalError):
        app.send_task("runs.tasks.tick", connection=connection)
    assert silent.asked == 1


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_holds_up_a_page_for_one_run_only(silent: Silent, settings) -> None:
    elsewhere.conf.update(
        broker_url=silent.url,
        broker_transport_options=app.conf.broker_transport_options,
        task_publish_retry=False,
    )
    settings.CELERY_APP = f"{__name__}.elsewhere"
    wakeups.ask_to_prepare([launch().runs.get().pk for _ in range(3)])
    assert silent.asked == 1


def test_lanes_are_woken_by_a_queue_of_their_own():
    route = app.amqp.router.route
    queues = {
        name: route({}, f"runs.tasks.{name}")["queue"].name for name in ("wake_lanes", "prepare", "prove")
    }
    assert queues["wake_lanes"] not in (queues["prepare"], queues["prove"])
    assert {*queues.values()} <= {*app.amqp.queues}


@pytest.fixture
def sent(settings) -> Iterator[Callable[[str], int]]:
    """Yield a function that empties a queue of the broker in memory and returns how many messages it had."""
    in_memory.conf.task_routes = app.conf.task_routes
    settings.CELERY_APP = f"{__name__}.in_memory"
    with in_memory.connection_for_read() as connection:

        def emptied(name: str) -> int:
            with closing(connection.SimpleQueue(name)) as queue:
                messages: int = queue.qsize()
                queue.clear()
            return messages

        yield emptied


def run_with_busy_lanes(**busy: int) -> int:
    """Return the number of a run whose trials run in so many lanes of each worker."""
    run = running(trials=max(1, sum(busy.values())))
    trials = iter(Trial.objects.filter(run=run))
    for worker, lanes in busy.items():
        for _ in range(lanes):
            Trial.objects.filter(pk=next(trials).pk).update(state=TrialState.RUNNING, worker=worker)
    return run.pk


@pytest.mark.django_db(transaction=True)
def test_only_workers_with_a_free_lane_are_woken(sent: Callable[[str], int]) -> None:
    for name, capacity in (("busy", 2), ("free", 2), ("idle", 1)):
        Worker.objects.create(name=name, capacity=capacity)
    Worker.objects.create(name="silent", seen=timezone.now() - timedelta(minutes=2))
    Worker.objects.create(name="full", problem="Disk full at /data/work: 3 MB free.")
    wakeups.wake_free_lanes(run_with_busy_lanes(busy=2, free=1))
    assert sent(LANES) == 2


@pytest.mark.django_db(transaction=True)
def test_nobody_is_woken_while_every_lane_is_busy(sent: Callable[[str], int]) -> None:
    Worker.objects.create(name="busy", capacity=3)
    wakeups.wake_free_lanes(run_with_busy_lanes(busy=3))
    assert sent(LANES) == 0


@pytest.mark.django_db(transaction=True)
def test_free_lanes_of_workers_without_the_label_are_not_woken(sent: Callable[[str], int]) -> None:
    Worker.objects.create(name="busy", labels=["gpu"], capacity=1)
    Worker.objects.create(name="able", labels=["gpu", "linux"], capacity=1)
    Worker.objects.create(name="other", labels=["linux"], capacity=1)
    run = run_with_busy_lanes(busy=1)
    Target.objects.filter(runs=run).update(labels=["gpu"])
    wakeups.wake_free_lanes(run)
    assert (sent(celery_queue("gpu")), sent(LANES)) == (1, 0)
