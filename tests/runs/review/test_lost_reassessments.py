"""Grading again when the worker or the database goes away meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from runs.engine.reaper import reap
from runs.engine.stored_trials.reassessing import request_reassessment
from runs.models import ReassessedTrial, Reassessment
from runs.workers import jobs
from runs.workers.heartbeat import heartbeat
from tests.runs import carried
from tests.runs.jobs import do_job, job_of, lapse_jobs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def requested() -> Reassessment:
    """Return a request to grade a trial again that no worker has taken."""
    gates = [{"type": "file_exists", "path": "out.txt"}]
    trial = carried.one(carried.shell_project(), prompt="echo done > out.txt", criteria={"gates": gates})
    return request_reassessment(trial.run, "grade", by=None, wakes=False)


def taken(requested: Reassessment) -> str:
    """Let another process take a request; return its token."""
    job = jobs.take_job(job_of(requested).pk)
    assert job
    return job.token


def test_a_lost_worker_leaves_no_request_open(requested):
    taken(requested)
    reap()
    requested.refresh_from_db()
    assert requested.finished is None
    lapse_jobs()
    reap()
    requested.refresh_from_db()
    assert requested.finished is not None
    assert requested.error == "Its worker was lost. Request it again."


def test_a_worker_keeps_what_it_is_at(requested, settings):
    settings.LEASE_SECONDS = 1
    with heartbeat.holding(taken(requested), "job"):
        time.sleep(2)
        reap()
    requested.refresh_from_db()
    assert requested.finished is None


def run_and_lose_at(statement: str, requested: Reassessment) -> None:
    """Carry a request out; its lease ends just before this SQL runs."""

    def lose(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if statement in sql:
            lapse_jobs()
            reap()
        return execute(sql, *rest)

    with connection.execute_wrapper(lose):
        do_job(requested)
    requested.refresh_from_db()


def test_a_worker_that_was_thought_lost_changes_no_result(requested):
    run_and_lose_at('INSERT INTO "runs_reassessedtrial"', requested)
    assert requested.error == "Its worker was lost. Request it again."


def test_a_worker_that_was_thought_lost_stores_nothing_and_stops(requested):
    run_and_lose_at('JOIN "runs_transcriptrecord"', requested)
    assert requested.error == "Its worker was lost. Request it again."
    assert not ReassessedTrial.objects.exists()


class LosesOnce:
    """Loses the connection at the first statement of each kind."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = list(kinds)

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        for kind in self.kinds:
            if sql.startswith(kind):
                self.kinds.remove(kind)
                raise OperationalError("the connection is closed")
        return execute(sql, *rest)


def test_a_lost_connection_costs_no_work(requested):
    losing = LosesOnce('INSERT INTO "runs_reassessedtrial"', 'UPDATE "runs_reassessment" SET "error"')
    with connection.execute_wrapper(losing):
        do_job(requested)
    assert losing.kinds == []
    requested.refresh_from_db()
    assert (requested.finished is not None, requested.error) == (True, "")
    assert ReassessedTrial.objects.filter(reassessment=requested).count() == 2
