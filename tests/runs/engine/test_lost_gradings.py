"""A worker that grades keeps its request, however long that takes."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from runs.engine.grading.evidence import Grading
from runs.engine.grading.requests import run_request
from runs.models import GradeRequest
from runs.workers import request_leases
from tests.builders import make_member, make_project
from tests.greeting import greeting

SLOW = greeting("- type: command_succeeds\n  command: sleep 2\n")


@pytest.mark.django_db(transaction=True)
def test_a_worker_keeps_the_request_that_it_grades(settings, tmp_path):
    settings.LEASE_SECONDS, settings.WORK_DIR = 1, tmp_path
    project = make_project()
    grading = Grading.model_validate({"suite": {"name": "greet.yaml", "text": SLOW}, "evidence": {}})
    made = GradeRequest.objects.create(
        project=project, by=make_member(project), request=grading.model_dump(mode="json")
    )
    ended = threading.Event()

    def end_lost() -> None:
        while not ended.wait(0.2):
            request_leases.end_lost()
        connections.close_all()

    reaper = threading.Thread(target=end_lost)
    reaper.start()
    run_request(made.pk)
    ended.set()
    reaper.join()
    made.refresh_from_db()
    assert made.result["graded"]["outcome"] == "pass"
