"""`run_scenarios --wait`: with a worker, without one, and with one that comes late."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connections
from django.utils import timezone

from runs.engine import run_here
from runs.models import Launch, Run, Worker
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

SUITE = "name: plain\ndescription: Nothing to do.\ntask: {prompt: Say hello.}\nevaluation: {gates: []}\n"
NOTICE = "No worker is running."


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "plain.yaml").write_text(SUITE)
    (tmp_path / "targets.yaml").write_text("targets:\n  - {name: m, provider: mock}\n")
    files = [str(tmp_path / "plain.yaml"), "--targets", str(tmp_path / "targets.yaml")]
    return ["run_scenarios", *files, "--target", "m", "--wait"]


def in_thread(work: Callable[[], None]) -> Thread:
    def carry() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = Thread(target=carry)
    thread.start()
    return thread


def carry_late(seconds: float) -> None:
    """Do as a worker does, some time after the launch is there."""
    while not Launch.objects.exists():
        time.sleep(0.05)
    time.sleep(seconds)
    run_here.run_here(Launch.objects.get())


def test_without_a_worker_it_reports_once_and_stops_waiting(arguments):
    called = call(*arguments, "--wait-limit", "1")
    assert called.code == 2
    assert called.err.count(NOTICE) == 1
    assert "'make run' starts evalhub with one." in called.err
    run = Run.objects.get()
    assert f"The runs stay queued for the next worker: run {run.pk}." in called.err
    assert (run.state, run.open) == ("queued", 1)


def test_a_server_shows_how_to_start_a_worker(arguments, settings):
    settings.EMBEDDED = False
    called = call(*arguments, "--wait-limit", "0.1")
    assert "'make worker' starts one." in called.err


def test_json_has_the_sentence_on_stdout_and_the_notice_beside_it(arguments):
    called = call(*arguments, "--wait-limit", "0.1", "--json")
    assert (called.code, called.document["id"]) == (2, "request/no-worker")
    assert NOTICE in called.err


def test_a_worker_that_comes_within_the_limit_carries_the_run(arguments):
    worker = in_thread(lambda: carry_late(1))
    called = call(*arguments, "--wait-limit", "30")
    worker.join()
    assert called.code == 0, called.err
    assert NOTICE in called.err
    assert "1/1 passed" in called.out


def test_it_names_the_labels_that_no_worker_has(arguments, tmp_path):
    (tmp_path / "targets.yaml").write_text("targets:\n  - {name: m, provider: mock, labels: [gpu, macos]}\n")
    Worker.objects.create(name="eval-1", labels=["gpu"])
    called = call(*arguments, "--wait-limit", "0.1")
    assert called.code == 2
    assert (
        "Waits for a worker with the labels gpu, macos. None is running. Waiting for 0.1 seconds."
        in called.err
    )


def test_with_a_worker_it_waits_however_long_a_run_takes(arguments):
    Worker.objects.create(name="eval-1")
    worker = in_thread(lambda: carry_late(2))
    called = call(*arguments, "--wait-limit", "0.1", "--quiet")
    worker.join()
    assert (called.code, called.err) == (0, "")


def test_it_names_the_full_disk_once(arguments):
    Worker.objects.create(name="eval-1", problem="Disk full at /data/work: no room.")
    worker = in_thread(lambda: carry_late(1))
    called = call(*arguments, "--wait-limit", "0.1", "--quiet")
    worker.join()
    assert (called.code, called.err.strip()) == (0, "Disk full at /data/work: no room.")


def test_one_that_is_silent_for_long_is_none(arguments):
    Worker.objects.create(name="eval-1", seen=timezone.now() - 2 * Worker.HEARD_WITHIN)
    assert call(*arguments, "--wait-limit", "0.1").code == 2


def test_without_a_limit_it_waits_on(arguments):
    worker = in_thread(lambda: carry_late(1))
    called = call(*arguments, "--wait-limit", "0")
    worker.join()
    assert called.code == 0, called.err
    assert "Waiting without a limit." in called.err


@pytest.mark.parametrize("limit", ["-1", "nan", "inf", "soon"])
def test_a_limit_is_a_number_of_seconds(arguments, limit):
    with pytest.raises(CommandError, match="--wait-limit"):
        call(*arguments, f"--wait-limit={limit}")
