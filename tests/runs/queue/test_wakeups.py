"""Wake-ups where no broker answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from evalhub.celery import app
from runs.queue import wakeups
from tests.runs.carrying import launch

elsewhere = Celery("elsewhere", set_as_current=False)
"""evalhub's application with a broker of a test."""


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
    wakeups.prepare([launch().runs.get().pk for _ in range(3)])
    assert silent.asked == 1


def test_lanes_are_woken_by_a_queue_of_their_own():
    route = app.amqp.router.route
    queues = {
        name: route({}, f"runs.tasks.{name}")["queue"].name for name in ("wake_lanes", "prepare", "prove")
    }
    assert queues["wake_lanes"] not in (queues["prepare"], queues["prove"])
    assert {*queues.values()} <= {*app.amqp.queues}
