"""Work that may take minutes leaves a thread of its worker to preparations."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from runs import tasks
from runs.engine.stored_trials.reassessing import request_reassessment
from tests.all import ROOT
from tests.runs import carried
from tests.runs.jobs import job_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_long_task_waits_for_a_thread_that_it_may_use(settings):
    gates = [{"type": "file_exists", "path": "out.txt"}]
    trial = carried.one(carried.shell_project(), prompt="echo done > out.txt", criteria={"gates": gates})
    made = request_reassessment(trial.run, "grade", by=None, wakes=False)
    job = job_of(made)
    with ExitStack() as busy:
        for _ in range(settings.TASK_THREADS - 1):
            busy.enter_context(tasks.long_jobs)
        tasks.do_job(job.pk)
        assert job_of(made).attempts == 0
    tasks.do_job(job.pk)
    made.refresh_from_db()
    assert (made.finished is not None, made.error) == (True, "")


def test_a_worker_with_one_lane_has_a_thread_that_no_long_task_takes():
    printing = "from evalhub.celery import app; print(app.conf.worker_concurrency)"
    environment = {**os.environ, "EVALHUB_WORKER_THREADS": "1"}
    command = [sys.executable, "-c", printing]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 1
