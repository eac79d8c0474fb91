"""E-mail by a real mail server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runs.alerts.api import triage
from runs.models import Alert, Delivery
from tests.builders import make_member
from tests.runs.alerts.notifications.channels import mail, make_due, only_delivery, regressed
from tests.runs.alerts.notifications.mail_server import MailServer, mail_server
from tests.runs.jobs import deliver_due

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    """Return a mail server that evalhub uses."""
    with mail_server() as started:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", started.port
        settings.MAIL_SERVER = True
        yield started


def test_a_regression_is_mailed_to_the_recipients(project: Any, server: MailServer) -> None:
    project.name = "Tools\nBcc: x@example.org"
    project.save()
    mail(project)
    run = regressed(project)
    deliver_due()
    ((recipients, message),) = server.mails
    assert recipients == ["team@example.org"]
    assert message["Subject"] == f"[evalhub] Suspected regression: Basics on local, run {run.pk}"
    text = message.get_content()
    assert "Pass rate −100 points" in text
    assert f"http://127.0.0.1:8000/p/tools/runs/{run.pk}/" in text
    row = only_delivery()
    assert message["Message-ID"] == f"<{row.uid}@evalhub>"
    assert (row.state, row.response) == ("sent", "The mail server accepted it for team@example.org.")


def test_a_mail_server_that_is_away_is_retried(project: Any, server: MailServer) -> None:
    server.refusal = "451 Try again later."
    mail(project)
    regressed(project)
    deliver_due()
    assert only_delivery().state == "queued"
    assert "Try again later." in only_delivery().response
    server.refusal = ""
    make_due()
    deliver_due()
    assert (only_delivery().state, len(server.mails)) == ("sent", 1)


def test_without_a_mail_server_the_log_says_what_to_set(project: Any, settings: Any) -> None:
    settings.MAIL_SERVER = False
    mail(project)
    regressed(project)
    deliver_due()
    assert only_delivery().response == "No mail server is set up. Set EVALHUB_EMAIL_URL on the workers."
    assert only_delivery().state == "queued"


def test_an_assignment_is_mailed_to_the_assignee_alone(project: Any, server: MailServer) -> None:
    grace, ada = make_member(project, name="grace"), make_member(project, name="ada")
    grace.email = "grace@example.org"
    grace.save()
    alert = Alert.objects.get(run=regressed(project))
    mail(project, "assigned")
    triage(alert, by=ada, assignee=grace, note="Look at export.")
    deliver_due()
    ((recipients, message),) = server.mails
    assert recipients == ["grace@example.org"]
    text = message.get_content()
    assert f"ada assigned the suspected regression of run {alert.run_id} to grace." in text
    assert "Note: Look at export." in text
    assert "/p/tools/regressions/?assignee=grace" in text


def test_an_assignee_without_an_address_is_reported(project: Any, server: MailServer) -> None:
    alert = Alert.objects.get(run=regressed(project))
    mail(project, "assigned")
    triage(alert, by=None, assignee=make_member(project, name="grace"))
    deliver_due()
    assert server.mails == []
    assert only_delivery().state == "failed"
    sentence = "grace has no e-mail address. Set one with 'manage.py create_user grace --email …'."
    assert only_delivery().response == sentence


def test_an_assignment_that_changed_hands_is_skipped(project: Any, server: MailServer) -> None:
    alert = Alert.objects.get(run=regressed(project))
    grace = make_member(project, name="grace")
    mail(project, "assigned")
    triage(alert, by=None, assignee=grace)
    triage(alert, by=None, assignee=None)
    deliver_due()
    assert server.mails == []
    triage(alert, by=None, assignee=grace)
    project.memberships.filter(user=grace).delete()
    deliver_due()
    assert server.mails == []
    assert sorted(Delivery.objects.values_list("state", "response")) == [
        ("skipped", "The alert was assigned to somebody else before this was sent."),
        ("skipped", "grace left the project before this was sent."),
    ]
