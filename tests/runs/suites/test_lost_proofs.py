"""Proofs whose worker or database goes away meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from runs.engine.reaper import reap
from runs.models import SuiteProof
from runs.suites.proofs_api import request_proof
from runs.workers import jobs
from tests.builders import make_project, make_suite
from tests.runs.jobs import do_job, job_of, lapse_jobs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def requested(settings, tmp_path) -> SuiteProof:
    """Return a requested proof that no worker has taken."""
    settings.WORK_DIR = tmp_path
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
    return request_proof(make_suite(make_project(), ("create",)), by=None)


def taken(requested: SuiteProof) -> str:
    """Let another process take a request; return its token."""
    job = jobs.take_job(job_of(requested).pk)
    assert job
    return job.token


def test_a_proof_of_a_lost_worker_ends_and_another_can_be_requested(requested):
    taken(requested)
    reap()
    requested.refresh_from_db()
    assert requested.finished is None
    lapse_jobs()
    reap()
    requested.refresh_from_db()
    assert requested.finished is not None
    assert requested.error == "Its worker was lost. Prove the suite again."
    assert request_proof(requested.suite_version, by=None).pk != requested.pk


def test_a_worker_that_was_thought_lost_stores_no_proof(requested):
    def lose(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if 'FROM "scenarios_scenarioversion"' in sql:
            lapse_jobs()
            reap()
        return execute(sql, *rest)

    with connection.execute_wrapper(lose):
        do_job(requested)
    requested.refresh_from_db()
    assert requested.error == "Its worker was lost. Prove the suite again."
    assert not requested.scenarios.exists()


def test_a_lost_connection_costs_no_proof(requested):
    kinds = ['INSERT INTO "runs_scenarioproof"', 'UPDATE "runs_suiteproof" SET "error"']

    def lose_once(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        for kind in kinds:
            if sql.startswith(kind):
                kinds.remove(kind)
                raise OperationalError("the connection is closed")
        return execute(sql, *rest)

    with connection.execute_wrapper(lose_once):
        do_job(requested)
    assert kinds == []
    requested.refresh_from_db()
    assert (requested.finished is not None, requested.error) == (True, "")
    assert requested.scenarios.count() == 1
