"""Workers say that they are here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.engine.reaper import reap
from runs.models import Worker
from runs.results.files.artifacts import store_id_if_readable
from runs.workers import worker_registry
from runs.workers.claims import own_name, worker_name
from runs.workers.heartbeat import heartbeat
from tests.services.object_store import silent_store, use_bucket
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_worker_is_listed_with_what_it_does_and_how_it_contains() -> None:
    with heartbeat.holding("a-slot", "slot"):
        worker_registry.store_heartbeat(4)
    worker = Worker.objects.get(name=worker_name())
    assert worker.lanes == 1
    assert worker.sandbox in ("bwrap", "landlock", "limits", "off")
    worker_registry.store_heartbeat(4)
    assert Worker.objects.get().lanes == 0


@pytest.mark.parametrize("judge", ["", "openai/m"])
def test_a_worker_says_whether_it_has_a_judge(settings, judge: str) -> None:
    settings.DEFAULT_JUDGE = judge
    worker_registry.store_heartbeat(1)
    assert [each.has_judge for each in worker_registry.judges_of_workers()] == [bool(judge)]
    assert worker_registry.find_own_judge()[0].has_judge is bool(judge)


def test_one_that_was_silent_for_a_day_is_forgotten() -> None:
    Worker.objects.create(name="old:1", seen=timezone.now() - timedelta(hours=2))
    Worker.objects.create(name="other:1", seen=timezone.now() - timedelta(minutes=30))
    worker_registry.store_heartbeat(4)
    reap()
    assert set(Worker.objects.values_list("name", flat=True)) == {"other:1", worker_name()}


def test_one_that_ends_in_order_is_gone() -> None:
    stop = threading.Event()
    thread = worker_registry.start(stop, 4)
    stop.set()
    thread.join(10)
    assert not Worker.objects.exists()


def test_one_whose_store_never_answers_is_listed(settings, monkeypatch) -> None:
    stop = threading.Event()
    with silent_store() as options:
        use_bucket(settings, monkeypatch, f"s3://silent{options}")
        thread = worker_registry.start(stop, 4, store_id_if_readable)
        try:
            until(Worker.objects.exists, 5)
        finally:
            stop.set()
            thread.join(10)
    assert not thread.is_alive()


def test_the_stores_id_follows_the_first_heartbeat() -> None:
    stop, answers = threading.Event(), threading.Event()

    def read() -> str:
        answers.wait(10)
        return "an-id"

    thread = worker_registry.start(stop, 4, read)
    try:
        until(Worker.objects.filter(store="").exists, 5)
        answers.set()
        until(Worker.objects.filter(store="an-id").exists, 10)
    finally:
        stop.set()
        thread.join(10)


@pytest.fixture
def own_name_again() -> Iterator[None]:
    yield
    own_name.reset()


def test_a_worker_leaves_a_name_that_another_one_has(own_name_again):
    name = worker_name()
    worker_registry.store_heartbeat(1)
    worker_registry.store_heartbeat(2)
    assert Worker.objects.get().name == name
    # Another process with the name, such as in a container that shares the host's network.
    Worker.objects.update(seen=timezone.now() + timedelta(seconds=1), labels=["gpu"])
    worker_registry.store_heartbeat(2)
    own = Worker.objects.get()
    assert own.name == worker_name()
    assert own.name.startswith(f"{name}:")
    Worker.objects.create(name=name, labels=["gpu"])
    worker_registry.store_heartbeat(2)
    assert set(Worker.objects.values_list("name", flat=True)) == {name, own.name}
