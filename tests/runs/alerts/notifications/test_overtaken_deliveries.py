"""A worker that is slower than its lease neither sends what another one has, nor overwrites its result."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, connections

from runs.alerts.notifications import delivery
from runs.alerts.notifications.channels import send_again, send_test
from runs.models import Job
from runs.workers import jobs
from tests.builders import make_project
from tests.runs.alerts.notifications.channels import only_delivery, webhook
from tests.runs.jobs import deliver_due, lapse_jobs
from tests.runs.servers import Reply, Request, serving


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.mark.django_db
def test_a_claim_that_is_lost_just_before_sending_sends_nothing(project: Any) -> None:
    taken = []

    def take_it_first(execute: Any, sql: str, *rest: Any) -> Any:
        if not taken and sql.startswith("UPDATE") and '"attempts"' in sql:
            taken.append(Job.objects.update(token="another"))
        return execute(sql, *rest)

    with serving(Reply()) as server:
        channel = webhook(project, server.url)
        send_test(channel, by=None)
        with connection.execute_wrapper(take_it_first):
            deliver_due()
    assert taken == [1]
    assert server.requests == []
    assert only_delivery().attempts == 0


@pytest.mark.django_db(transaction=True)
def test_a_result_that_comes_after_send_again_is_dropped() -> None:
    def fail_and_send_again(_: Request) -> Reply:
        lapse_jobs()
        jobs.end_lost()
        # Another worker takes the job, and reports what the lost one was sending.
        deliver_due()
        assert send_again(only_delivery(), by=None)
        connections.close_all()
        return Reply(status=500)

    with serving(fail_and_send_again) as server:
        channel = webhook(make_project(), server.url)
        send_test(channel, by=None)
        deliver_due()
    row = only_delivery()
    assert (row.state, row.attempts, row.status) == ("queued", 0, None)


@pytest.mark.django_db(transaction=True)
def test_a_slow_worker_stores_the_result_of_its_attempt() -> None:
    def lose(_: Request) -> Reply:
        lapse_jobs()
        jobs.end_lost()
        deliver_due()
        assert (only_delivery().state, only_delivery().response) == ("failed", delivery.LOST)
        connections.close_all()
        return Reply()

    with serving(lose) as server:
        send_test(webhook(make_project(), server.url), by=None)
        deliver_due()
    assert (only_delivery().state, only_delivery().attempts) == ("sent", 1)
    assert len(server.requests) == 1


@pytest.mark.django_db
def test_a_message_that_comes_while_others_are_sent_is_not_forgotten(project: Any) -> None:
    channel = webhook(project, "http://127.0.0.1:9")
    send_test(channel, by=None)
    job = jobs.take_job(Job.objects.get().pk)
    assert job
    send_test(channel, by=None)
    jobs.put_off(job, 3600.0)
    assert jobs.due_jobs().get() == job
