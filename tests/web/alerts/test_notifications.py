"""Channels on the pages of the settings."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from evalhub.teams.models import AuditEvent
from runs.alerts.notifications.channels import decode_key
from runs.models import Channel, Delivery, Notification
from tests.builders import make_project
from tests.runs.alerts.notifications.channels import SECRET, mail, only_delivery, webhook
from tests.runs.jobs import deliver_due
from tests.runs.servers import Reply, serving
from tests.web.screen import main_of, parse

ADDRESS = "/p/tools/settings/notifications/"
HOOK = "https://hooks.example.org/token-of-the-path"
FORM = {"name": "CI bot", "address": HOOK, "secret": SECRET, "events": ["regression", "assigned"]}


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


def test_the_settings_lead_to_the_channels(signed_in: Any) -> None:
    page = parse(signed_in("viewer").get("/p/tools/settings/"))
    assert page.region("Settings").links["Notifications"] == ADDRESS
    assert "No channels yet. An admin of the project can add one." in main_of(
        signed_in("viewer").get(ADDRESS)
    )


def test_a_webhook_is_added(signed_in: Any) -> None:
    client = signed_in()
    assert main_of(client.get(ADDRESS)).links["Add Webhook"] == f"{ADDRESS}new/webhook/"
    page = main_of(client.post(f"{ADDRESS}new/webhook/", FORM, follow=True))
    channel = Channel.objects.get()
    assert (channel.kind, channel.address, channel.secret) == ("webhook", HOOK, SECRET)
    assert channel.events == ["regression", "assigned"]
    assert page.facts["Sends to"] == "https://hooks.example.org/…"
    row = main_of(client.get(ADDRESS)).table("Channels").row("CI bot")
    assert row.cell("Events").text == "Regression, Alert assigned"
    assert AuditEvent.objects.get().action == "channel.create"


def test_mails_are_added_with_their_recipients(signed_in: Any) -> None:
    form = {"name": "Team", "recipients": "ada@example.org,\n grace@example.org", "events": ["regression"]}
    signed_in().post(f"{ADDRESS}new/email/", form)
    assert Channel.objects.get().recipients == ["ada@example.org", "grace@example.org"]


def test_a_missing_mail_server_is_named(signed_in: Any, settings: Any) -> None:
    settings.MAIL_SERVER = False
    assert "No mail server is set up" in main_of(signed_in().get(f"{ADDRESS}new/email/"))
    settings.MAIL_SERVER = True
    assert "No mail server is set up" not in main_of(signed_in().get(f"{ADDRESS}new/email/"))


@pytest.mark.parametrize(
    ("field", "value", "label", "sentence"),
    [
        ("address", "hooks", "URL", "Enter a full address that starts with https:// or http://."),
        ("secret", "mine", "Signing secret", "Enter whsec_ and 24 to 64 random bytes in base64"),
        ("name", "", "Name", "This field is required."),
        ("name", "taken", "Name", "There is already a channel “taken”."),
    ],
)
def test_an_error_is_shown_beside_its_field(
    signed_in: Any, project: Any, field: str, value: str, label: str, sentence: str
) -> None:
    mail(project, name="taken")
    response = signed_in().post(f"{ADDRESS}new/webhook/", {**FORM, field: value})
    assert response.status_code == 422
    page = main_of(response)
    assert sentence in page.field(label).hint
    assert page.field("Alert assigned").is_checked
    assert Channel.objects.count() == 1


def test_a_channel_without_events_is_refused(signed_in: Any) -> None:
    response = signed_in().post(f"{ADDRESS}new/webhook/", {**FORM, "events": []})
    assert response.status_code == 422
    assert "Choose at least one event." in main_of(response)


def test_a_kind_that_is_none_is_not_found(signed_in: Any) -> None:
    assert signed_in().get(f"{ADDRESS}new/pigeon/").status_code == 404


def test_addresses_and_secrets_are_never_shown(signed_in: Any, project: Any) -> None:
    channel = webhook(project, HOOK)
    client = signed_in()
    wrong = {**FORM, "name": ""}
    answers = [
        client.get(ADDRESS),
        client.get(f"{ADDRESS}{channel.pk}/"),
        client.post(f"{ADDRESS}{channel.pk}/", wrong),
        client.post(f"{ADDRESS}new/webhook/", wrong),
        client.post(f"{ADDRESS}{channel.pk}/", FORM, follow=True),
        client.get("/p/tools/settings/audit/"),
    ]
    for each in answers:
        text = each.content.decode()
        assert "token-of-the-path" not in text
        assert SECRET not in text


def test_an_empty_secret_keeps_the_stored_one(signed_in: Any, project: Any) -> None:
    channel = webhook(project, HOOK)
    client = signed_in()
    assert "keep the stored one" in main_of(client.get(f"{ADDRESS}{channel.pk}/")).field("URL").hint
    client.post(
        f"{ADDRESS}{channel.pk}/", {"name": "New", "events": ["assigned"], "address": "", "secret": ""}
    )
    channel.refresh_from_db()
    assert (channel.name, channel.events) == ("New", ["assigned"])
    assert (channel.address, channel.secret) == (HOOK, SECRET)


def test_a_test_is_sent_and_its_response_is_shown(signed_in: Any, project: Any) -> None:
    client = signed_in()
    with serving(Reply({"ok": True})) as server:
        channel = webhook(project, server.url)
        address = f"{ADDRESS}{channel.pk}/"
        assert client.post(f"{address}test/").url == address
        section = parse(client.get(address)).region("Delivery log")
        assert section.get("hx-trigger") == "every 1s"
        deliver_due()
    (request,) = server.requests
    assert "sent this test. The channel works." in request.json["data"]["text"]
    section = parse(client.get(address)).region("Delivery log")
    assert section.get("hx-trigger") is None
    row = main_of(client.get(address)).table("Delivery log").row("Test")
    assert row.cell("State").text == "sent"
    assert row.cell("Response").text == '200 {"ok": true}'


def test_a_failed_message_is_sent_again(signed_in: Any, project: Any) -> None:
    channel = webhook(project, HOOK)
    notification = Notification.objects.create(project=project, event="test", key="one")
    delivery = Delivery.objects.create(
        notification=notification, channel=channel, state="failed", attempts=30, finished=timezone.now()
    )
    client = signed_in()
    page = main_of(client.get(f"{ADDRESS}{channel.pk}/"))
    assert f"Send again, message {delivery.pk}" in page.buttons
    page = main_of(client.post(f"{ADDRESS}messages/{delivery.pk}/again/", follow=True))
    assert only_delivery().state == "queued"
    assert f"Send again, message {delivery.pk}" not in page.buttons
    client.post(f"{ADDRESS}messages/{delivery.pk}/again/")
    assert only_delivery().attempts == 0


def test_a_channel_is_removed_with_its_log(signed_in: Any, project: Any) -> None:
    channel = webhook(project, HOOK)
    client = signed_in()
    client.post(f"{ADDRESS}{channel.pk}/test/")
    assert client.post(f"{ADDRESS}{channel.pk}/delete/").url == ADDRESS
    assert not Channel.objects.exists()
    assert not Delivery.objects.exists()


def test_another_projects_channel_is_not_found(signed_in: Any) -> None:
    channel = webhook(make_project("other"), HOOK)
    client = signed_in()
    for path in ("", "test/", "delete/"):
        assert client.post(f"{ADDRESS}{channel.pk}/{path}", FORM).status_code == 404
    assert Channel.objects.get().name == "hook"


def test_a_secret_is_generated_shown_once_and_saved(signed_in: Any, project: Any) -> None:
    client = signed_in("admin")
    typed = {"name": "CI bot", "address": HOOK, "secret": "", "events": ["assigned"]}
    made = parse(client.post(f"{ADDRESS}new/webhook/", typed | {"generate": "yes"}))
    assert not Channel.objects.exists()
    secret = made.field("Signing secret").value
    assert len(decode_key(secret)) == 32
    assert "Copy it to the receiver now." in made.field("Signing secret").hint
    assert [made.field(each).value for each in ("Name", "URL")] == ["CI bot", HOOK]
    assert made.field("Alert assigned").is_checked and not made.field("Regression").is_checked
    client.post(f"{ADDRESS}new/webhook/", typed | {"secret": secret})
    channel = Channel.objects.get()
    assert channel.secret == secret
    assert secret not in client.get(f"{ADDRESS}{channel.pk}/").content.decode()
    another = parse(client.post(f"{ADDRESS}{channel.pk}/", typed | {"generate": "yes"}))
    assert another.field("Signing secret").value not in ("", secret)
    channel.refresh_from_db()
    assert channel.secret == secret, "until it is saved"
