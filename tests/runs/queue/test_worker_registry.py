"""Workers say that they are here."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.execution.reaper import reap
from runs.models import Worker
from runs.queue import worker_registry
from runs.queue.heartbeat import heartbeat
from runs.queue.worker_registry import worker_name

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_worker_is_listed_with_what_it_does_and_how_it_contains() -> None:
    with heartbeat.holding("a-place", "place"):
        worker_registry.heartbeat()
    worker = Worker.objects.get(name=worker_name())
    assert worker.lanes == 1
    assert worker.sandbox in ("bwrap", "landlock", "limits", "off")
    worker_registry.heartbeat()
    assert Worker.objects.get().lanes == 0


def test_one_that_was_silent_for_a_day_is_forgotten() -> None:
    Worker.objects.create(name="old:1", seen=timezone.now() - timedelta(hours=2))
    Worker.objects.create(name="other:1", seen=timezone.now() - timedelta(minutes=30))
    worker_registry.heartbeat()
    reap()
    assert set(Worker.objects.values_list("name", flat=True)) == {"other:1", worker_name()}


def test_one_that_ends_in_order_is_gone() -> None:
    stop = threading.Event()
    thread = worker_registry.start(stop)
    stop.set()
    thread.join(10)
    assert not Worker.objects.exists()
