"""Work that may take minutes leaves a thread of its worker to preparations."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from runs import tasks
from runs.models import Reassessment
from tests.all import ROOT
from tests.runs import carried

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_long_task_waits_for_a_thread_that_it_may_use(settings):
    gates = [{"type": "file_exists", "path": "out.txt"}]
    trial = carried.one(carried.shell_project(), prompt="echo done > out.txt", criteria={"gates": gates})
    made = Reassessment.objects.create(run=trial.run, kind="grade")
    with ExitStack() as busy:
        for _ in range(settings.TASK_THREADS - 1):
            busy.enter_context(tasks.long_tasks)
        tasks.reassess(made.pk)
        made.refresh_from_db()
        assert made.worker == ""
    tasks.reassess(made.pk)
    made.refresh_from_db()
    assert (made.worker != "", made.error) == (True, "")


def test_a_worker_with_one_lane_has_a_thread_that_no_long_task_takes():
    printing = "from evalhub.celery import app; print(app.conf.worker_concurrency)"
    environment = {**os.environ, "EVALHUB_WORKER_THREADS": "1"}
    command = [sys.executable, "-c", printing]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 1
