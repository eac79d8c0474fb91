"""The digest of a week, at most once for each project."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evalhub.teams.models import AuditEvent
from runs.alerts.notifications.digest import monday_of, record_digests
from runs.alerts.triage import triage
from runs.models import Alert, Channel, Delivery, Notification, Run
from runs.tasks import digests
from tests.builders import make_project, make_run, make_suite
from tests.runs.alerts.notifications.channels import regressed, slack, webhook
from tests.runs.jobs import deliver_due
from tests.runs.servers import Reply, serving

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
LAST_WEEK = MONDAY - timedelta(days=3)
HOOK = "https://hooks.example.org/evalhub"


def weekly(project: Any, address: str = HOOK) -> Channel:
    channel = webhook(project, address, "digest")
    Channel.objects.update(created=MONDAY - timedelta(days=30))
    return channel


def move_to_last_week() -> None:
    Run.objects.update(finished=LAST_WEEK)
    Alert.objects.update(created=LAST_WEEK)
    AuditEvent.objects.update(at=LAST_WEEK)


@pytest.mark.parametrize(
    ("now", "monday"),
    [
        (datetime(2026, 11, 23, 0, 0, tzinfo=UTC), MONDAY),
        (datetime(2026, 11, 29, 23, 59, tzinfo=UTC), MONDAY),
        (datetime(2026, 11, 30, 0, 0, tzinfo=UTC), MONDAY + timedelta(days=7)),
    ],
)
def test_a_week_begins_on_monday(now: datetime, monday: datetime) -> None:
    assert monday_of(now) == monday


@pytest.mark.django_db
def test_a_digest_says_what_changed(project: Any) -> None:
    with serving(Reply()) as server:
        weekly(project, server.url)
        run = regressed(project)
        make_run(make_suite(project), outcome="error")
        triage(Alert.objects.get(run=run), by=None, state="fixed")
        move_to_last_week()
        make_run(make_suite(project), outcome="pass")
        assert record_digests(now=MONDAY + timedelta(hours=1)) == 1
        deliver_due()
    body = server.requests[0].json
    assert body["type"] == "digest"
    data = body["data"]
    assert (data["from"], data["to"]) == ("2026-11-16", "2026-11-22")
    assert data["title"] == "Week 16 Nov to 22 Nov 2026: Tools"
    lines = data["text"].split("\n")
    assert lines[0] == "3 runs finished: 1 passed, 1 failed, 1 ended as errors."
    assert lines[1] == "Verdicts: Regressed 1."
    assert lines[2] == "1 regression opened, 1 closed, 0 open now."
    assert lines[3].startswith(f"- Basics on local, run {run.pk} (")
    assert lines[3].endswith(f"/p/tools/runs/{run.pk}/")
    assert data["regressions"] == {"opened": 1, "closed": 1, "open": 0, "after_change": 0}


@pytest.mark.django_db
def test_a_week_is_summed_up_once(project: Any) -> None:
    weekly(project)
    slack(project, HOOK, "digest")
    Channel.objects.update(created=MONDAY - timedelta(days=30))
    regressed(project)
    move_to_last_week()
    assert record_digests(now=MONDAY) == 1
    assert record_digests(now=MONDAY + timedelta(days=6)) == 0
    assert Notification.objects.get().key == f"digest:{project.pk}:2026-W47"
    assert Delivery.objects.count() == 2
    Run.objects.update(finished=MONDAY + timedelta(days=2))
    assert record_digests(now=MONDAY + timedelta(days=7)) == 1


@pytest.mark.django_db
def test_a_week_without_news_sends_nothing(project: Any) -> None:
    weekly(project)
    others = make_suite(make_project("other"))
    make_run(others, outcome="pass", finished=LAST_WEEK)
    assert record_digests(now=MONDAY) == 0


@pytest.mark.django_db
def test_a_new_channel_gets_no_digest_of_before(project: Any) -> None:
    weekly(project)
    Channel.objects.update(created=MONDAY + timedelta(hours=1))
    regressed(project)
    move_to_last_week()
    assert record_digests(now=MONDAY + timedelta(days=1)) == 0


@pytest.mark.django_db
def test_beat_asks_for_digests(project: Any) -> None:
    from evalhub.celery import app

    tasks = {each["task"] for each in app.conf.beat_schedule.values()}
    assert "runs.tasks.digests" in tasks
    weekly(project)
    digests()
