"""What is stored with an event, for whom, and how often."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from runs.alerts.api import triage
from runs.compare.comparison import compare_with_baseline
from runs.db.outbox import record_failure
from runs.engine import recording
from runs.models import Alert, Delivery, Notification
from tests.builders import make_member, make_project, make_run, make_suite
from tests.runs.alerts.notifications.channels import mail, regressed, slack, webhook
from tests.runs.carrying import claimed, launch, passed, running

pytestmark = pytest.mark.django_db
HOOK = "https://hooks.example.org/evalhub"


def events() -> list[str]:
    rows = Delivery.objects.order_by("pk").values_list("notification__event", "channel__name")
    return [f"{event} to {name}" for event, name in rows]


def test_an_alert_is_stored_for_channels_that_chose_it(project: Any) -> None:
    webhook(project, HOOK, "regression")
    webhook(project, HOOK, "assigned", name="assignments")
    webhook(make_project("other"), HOOK, "regression", name="others")
    run = regressed(project)
    assert events() == ["regression to hook"]
    assert Notification.objects.get().alert == Alert.objects.get(run=run)


def test_without_a_channel_nothing_is_stored(project: Any) -> None:
    regressed(project)
    assert not Notification.objects.exists()


def test_comparing_a_run_again_stores_nothing_new(project: Any) -> None:
    webhook(project, HOOK)
    run = regressed(project)
    Alert.objects.all().delete()
    compare_with_baseline(run)
    assert Alert.objects.exists()
    assert events() == ["regression to hook"]


def test_a_run_that_finished_days_ago_is_no_news(project: Any) -> None:
    webhook(project, HOOK)
    regressed(project, finished=timezone.now() - timedelta(days=2))
    assert Alert.objects.exists()
    assert events() == []


def test_an_event_that_is_rolled_back_leaves_no_message(project: Any) -> None:
    webhook(project, HOOK)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        regressed(project)
        raise ZeroDivisionError
    assert not Notification.objects.exists()


def test_a_run_whose_trials_end_as_errors_is_stored_once(project: Any) -> None:
    webhook(project, HOOK, "run_failed")
    run = running(make_suite(project, ("a",), criteria={"gates": []}))
    recording.record_result(claimed(run), passed(outcome="error"))
    assert events() == ["run_failed to hook"]
    run.refresh_from_db()
    record_failure(run)
    assert events() == ["run_failed to hook"]


@pytest.mark.parametrize("outcome", ["pass", "fail"])
def test_a_run_that_was_carried_out_is_no_failure(project: Any, outcome: str) -> None:
    webhook(project, HOOK, "run_failed")
    run = running(make_suite(project, ("a",), criteria={"gates": []}))
    recording.record_result(claimed(run), passed(outcome=outcome))
    assert events() == []


def test_a_cancelled_run_is_no_failure(project: Any) -> None:
    webhook(project, HOOK, "run_failed")
    make_run(make_suite(project), state="cancelled", outcome="error")
    record_failure(make_run(make_suite(project), state="cancelled", outcome="error"))
    assert events() == []


def test_a_run_that_cannot_be_prepared_is_stored(project: Any) -> None:
    webhook(project, HOOK, "run_failed")
    run = launch(make_suite(project, criteria={"gates": []})).runs.get()
    run.state, run.token = "preparing", "mine"
    run.save()
    assert recording.fail_run(run.pk, "mine", "The target cannot start.", [])
    assert events() == ["run_failed to hook"]


def test_an_assignment_is_stored_for_one_mail_and_the_others(project: Any) -> None:
    grace, ada = make_member(project, name="grace"), make_member(project, name="ada")
    alert = Alert.objects.get(run=regressed(project))
    mail(project, "assigned", name="a")
    mail(project, "assigned", name="b", to="b@example.org")
    slack(project, HOOK, "assigned")
    triage(alert, by=ada, assignee=grace)
    assert events() == ["assigned to a", "assigned to slack"]
    notification = Notification.objects.get()
    assert (notification.to, notification.by) == (grace, ada)


def test_only_a_new_assignee_is_notified(project: Any) -> None:
    grace, ada = make_member(project, name="grace"), make_member(project, name="ada")
    alert = Alert.objects.get(run=regressed(project))
    mail(project, "assigned")
    triage(alert, by=ada, assignee=ada)
    assert events() == []
    triage(alert, by=ada, assignee=grace)
    triage(alert, by=ada, assignee=grace, note="Look at export.")
    triage(alert, by=ada, state="investigating")
    triage(alert, by=ada, assignee=None)
    assert events() == ["assigned to mail"]
    triage(alert, by=ada, assignee=grace)
    assert len(events()) == 2
