"""A worker that is slower than its lease neither sends what another one has, nor overwrites its result."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from runs.alerts.notifications import delivery
from runs.alerts.notifications.channels import send_again, send_test
from runs.models import Delivery
from runs.tasks import tick
from tests.builders import make_project
from tests.runs.alerts.notifications.channels import only_delivery, webhook
from tests.runs.servers import Reply, Request, serving


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.mark.django_db
def test_a_claim_that_is_lost_just_before_sending_sends_nothing(project: Any) -> None:
    taken = []

    def take_it_first(execute: Any, sql: str, *rest: Any) -> Any:
        if not taken and sql.startswith("UPDATE") and '"attempts"' in sql:
            taken.append(
                Delivery.objects.update(token="another", lease_until=timezone.now() + Delivery.LEASE)
            )
        return execute(sql, *rest)

    with serving(Reply()) as server:
        channel = webhook(project, server.url)
        send_test(channel, by=None)
        with connection.execute_wrapper(take_it_first):
            delivery.deliver_channel(channel.pk)
    assert taken == [1]
    assert server.requests == []
    assert only_delivery().attempts == 0


@pytest.mark.django_db(transaction=True)
def test_a_result_that_comes_after_send_again_is_dropped() -> None:
    def fail_and_send_again(_: Request) -> Reply:
        delivery.fail_lost(now=timezone.now() + timedelta(hours=1))
        assert send_again(only_delivery(), by=None)
        connections.close_all()
        return Reply(status=500)

    with serving(fail_and_send_again) as server:
        channel = webhook(make_project(), server.url)
        send_test(channel, by=None)
        delivery.deliver_channel(channel.pk)
    row = only_delivery()
    assert (row.state, row.attempts, row.status) == ("queued", 0, None)


@pytest.mark.django_db
def test_the_tick_reports_a_message_whose_worker_ended(project: Any) -> None:
    send_test(webhook(project, "http://127.0.0.1:9"), by=None)
    claimed = delivery.claim(only_delivery().pk, now=timezone.now())
    assert claimed
    assert delivery.begin(claimed, now=timezone.now())
    tick()
    assert only_delivery().state == "sending"
    Delivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    tick()
    assert (only_delivery().state, only_delivery().response) == ("failed", delivery.LOST)
