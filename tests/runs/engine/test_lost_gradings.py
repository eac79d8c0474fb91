"""A worker that grades keeps its request, however long that takes."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from runs.engine.grading.evidence import Grading
from runs.engine.grading.requests import request_grading
from runs.workers import jobs
from tests.builders import make_member, make_project
from tests.greeting import greeting
from tests.runs.jobs import do_job

SLOW = greeting("- type: command_succeeds\n  command: sleep 2\n")


@pytest.mark.django_db(transaction=True)
def test_a_worker_keeps_the_request_that_it_grades(settings, tmp_path):
    settings.LEASE_SECONDS, settings.WORK_DIR = 1, tmp_path
    project = make_project()
    grading = Grading.model_validate({"suite": {"name": "greet.yaml", "text": SLOW}, "evidence": {}})
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    made = request_grading(project, grading, by=make_member(project))
    ended = threading.Event()

    def end_lost() -> None:
        while not ended.wait(0.2):
            jobs.end_lost()
        connections.close_all()

    reaper = threading.Thread(target=end_lost)
    reaper.start()
    do_job(made)
    ended.set()
    reaper.join()
    made.refresh_from_db()
    assert made.result["graded"]["outcome"] == "pass"
