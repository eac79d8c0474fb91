"""Wrong channels are refused with one sentence for each field."""

from __future__ import annotations

from typing import Any

import pytest

from evalhub.teams.models import AuditEvent
from runs.alerts.notifications.channels import (
    ChannelRefused,
    change_channel,
    create_channel,
    decode_key,
    delete_channel,
    signature_headers,
)
from runs.models import Channel
from tests.runs.alerts.notifications.channels import SECRET, mail, webhook

pytestmark = pytest.mark.one_database

HOOK = {"name": "Hook", "address": "https://a.example.org/x", "secret": SECRET, "events": ["regression"]}
MAIL = {"name": "Mail", "recipients": ["ada@example.org"], "events": ["regression"]}


def test_a_signature_is_that_of_the_standards_example() -> None:
    """Source: the test vector of the Standard Webhooks reference implementations."""
    headers = signature_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "abc", SECRET.removeprefix("whsec_"), "whsec_!!!", "whsec_YWJj"]
)
def test_what_is_no_key_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="not"):
        decode_key(secret)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "changes", "field", "sentence"),
    [
        ("webhook", {"address": "hooks"}, "address", "starts with https:// or http://"),
        ("webhook", {"address": "ftp://a.example.org"}, "address", "starts with https:// or http://"),
        ("webhook", {"address": "https://"}, "address", "starts with https:// or http://"),
        ("webhook", {"address": "https://[::1"}, "address", "starts with https:// or http://"),
        ("webhook", {"address": "https://a:99999/"}, "address", "starts with https:// or http://"),
        ("webhook", {"address": "https://a\n.example.org"}, "address", "control characters"),
        ("webhook", {"address": "https://ada:pw@a.example.org"}, "address", "contains a user name"),
        ("webhook", {"address": f"https://a.example.org/{'x' * 500}"}, "address", "more than 500"),
        ("webhook", {"secret": "mine"}, "secret", "24 to 64 random bytes in base64"),
        ("webhook", {"events": []}, "events", "Choose at least one event."),
        ("webhook", {"events": ["test"]}, "events", "“test” is not an event."),
        ("webhook", {"name": " "}, "name", "Enter a name"),
        ("webhook", {"name": "x" * 81}, "name", "at most 80 characters"),
        ("email", {"recipients": ["ada"]}, "recipients", "“ada” is not an e-mail address."),
        ("email", {"recipients": []}, "recipients", "Enter at least one e-mail address."),
        ("email", {"recipients": ["a@example.org"] * 21}, "recipients", "There are 21 addresses."),
        ("slack", {"address": ""}, "address", "Enter a full address"),
    ],
)
def test_a_wrong_channel_is_refused(
    project: Any, kind: str, changes: dict[str, Any], field: str, sentence: str
) -> None:
    values = {**(MAIL if kind == "email" else HOOK), **changes}
    with pytest.raises(ChannelRefused) as refused:
        create_channel(project, kind, values, by=None)
    assert list(refused.value.problems) == [field]
    assert sentence in refused.value.problems[field]
    assert not Channel.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db
def test_an_assignments_mail_needs_no_recipients(project: Any) -> None:
    values = {"name": "Mail", "recipients": [], "events": ["assigned"]}
    assert create_channel(project, "email", values, by=None).destination == ""


@pytest.mark.django_db
def test_a_name_is_used_once(project: Any) -> None:
    mail(project, name="team")
    with pytest.raises(ChannelRefused, match="There is already a channel “team”"):
        webhook(project, "https://a.example.org", name="team")


@pytest.mark.django_db
def test_an_empty_secret_keeps_the_stored_one(project: Any) -> None:
    channel = webhook(project, "https://a.example.org/x")
    change_channel(channel, {"name": "new", "address": "", "secret": "", "events": ["assigned"]}, by=None)
    channel.refresh_from_db()
    assert (channel.name, channel.address, channel.secret) == ("new", "https://a.example.org/x", SECRET)


@pytest.mark.django_db
def test_the_audit_log_names_fields_and_no_values(project: Any) -> None:
    channel = webhook(project, "https://a.example.org/token-one")
    change_channel(channel, {"address": "https://a.example.org/token-two", "events": ["assigned"]}, by=None)
    delete_channel(channel, by=None)
    rows = list(AuditEvent.objects.order_by("pk").values_list("action", "subject", "detail"))
    assert rows == [
        ("channel.create", "hook", {"kind": "webhook", "events": ["regression"]}),
        ("channel.change", "hook", {"changed": ["address", "events"]}),
        ("channel.delete", "hook", {}),
    ]


@pytest.mark.django_db
def test_only_the_host_of_an_address_is_shown(project: Any) -> None:
    assert webhook(project, "https://a.example.org:8443/token").destination == "https://a.example.org:8443/…"
