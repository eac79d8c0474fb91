"""Channels and deliveries over REST; URLs and secrets go in and never come out."""

from __future__ import annotations

from typing import Any

import pytest

from evalhub.teams.models import AuditEvent
from runs.alerts.notifications.channels import send_test
from runs.models import Channel, Delivery
from tests.builders import make_project
from tests.runs.alerts.notifications.channels import SECRET, webhook
from tests.runs.jobs import deliver_due
from tests.runs.servers import Reply, serving

HOOK: dict[str, Any] = {
    "name": "CI bot",
    "kind": "webhook",
    "events": ["regression", "run_failed"],
    "address": "https://ci.example.org/token-of-the-path",
    "secret": SECRET,
}


@pytest.fixture(autouse=True)
def _no_broker(settings: Any) -> None:
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


def test_a_channel_is_created_changed_and_deleted(api: Any) -> None:
    admin = api()
    created = admin.post("/channels", HOOK)
    assert created.status_code == 201
    body = created.json()
    assert {**body, "id": 0, "created": ""} == {
        "id": 0,
        "name": "CI bot",
        "kind": "webhook",
        "recipients": [],
        "host": "https://ci.example.org",
        "events": ["regression", "run_failed"],
        "created": "",
    }
    assert admin.get("/channels").json()["items"] == [body]
    changed = admin.patch(f"/channels/{body['id']}", {"events": ["assigned"]})
    assert changed.json() == {**body, "events": ["assigned"]}
    channel = Channel.objects.get()
    assert (channel.address, channel.secret) == (HOOK["address"], SECRET)
    assert admin.delete(f"/channels/{body['id']}").status_code == 204
    assert not Channel.objects.exists()


def test_addresses_and_secrets_never_come_out(api: Any, project: Any) -> None:
    admin = api()
    other = SECRET.replace("A", "B")
    answers = [
        admin.post("/channels", HOOK),
        admin.post("/channels", HOOK),
        admin.post(
            "/channels", {**HOOK, "name": "wrong", "secret": f"{SECRET}!", "address": "token-of-the-path"}
        ),
        admin.post("/channels", {**HOOK, "name": "x", "secret": SECRET * 9, "address": HOOK["address"] * 30}),
        admin.patch(f"/channels/{Channel.objects.get().pk}", {"secret": other}),
        admin.get("/channels"),
        admin.get("/deliveries"),
    ]
    assert [each.status_code for each in answers] == [201, 422, 422, 422, 200, 200, 200]
    logged = str(list(AuditEvent.objects.values_list("subject", "detail")))
    for text in (*(each.content.decode() for each in answers), logged):
        assert "token-of-the-path" not in text
        assert SECRET[6:40] not in text
        assert other[6:40] not in text


@pytest.mark.parametrize(
    ("body", "where", "sentence"),
    [
        ({"address": "ci"}, "body.address", "Enter a full address"),
        ({"events": []}, "body.events", "Choose at least one event."),
        ({"events": ["confirmed regression"]}, "body.events", "is not an event"),
        ({"kind": "pigeon"}, "body.kind", "email"),
        ({"colour": "red"}, "body.colour", "There is no field of this name."),
    ],
)
def test_a_wrong_field_is_named(api: Any, body: dict[str, Any], where: str, sentence: str) -> None:
    response = api().post("/channels", {**HOOK, **body})
    assert response.status_code == 422
    (problem,) = response.json()["problems"]
    assert problem["where"] == where
    assert sentence in problem["what"]


def test_nothing_to_change_is_refused(api: Any, project: Any) -> None:
    channel = webhook(project, HOOK["address"])
    assert api().patch(f"/channels/{channel.pk}", {}).json()["id"] == "channel/nothing"


def test_another_projects_channel_is_not_found(api: Any) -> None:
    channel = webhook(make_project("other"), HOOK["address"])
    admin = api()
    assert admin.patch(f"/channels/{channel.pk}", {"name": "mine"}).status_code == 404
    assert admin.delete(f"/channels/{channel.pk}").status_code == 404
    assert admin.get("/deliveries", channel=channel.pk).status_code == 404


def test_deliveries_are_listed_with_the_response(api: Any, project: Any) -> None:
    with serving(Reply({"error": "down"}, 503)) as server:
        channel = webhook(project, server.url)
        sent = send_test(channel, by=None)
        deliver_due()
    (item,) = api().get("/deliveries", channel=channel.pk, state="queued").json()["items"]
    assert (item["message"], item["event"], item["run"]) == (sent.uid, "test", None)
    assert (item["state"], item["attempts"], item["status"]) == ("queued", 1, 503)
    assert item["response"] == '{"error": "down"}'
    assert item["next_attempt"] > item["created"]
    assert api().get("/deliveries", state="sent").json()["items"] == []
    assert Delivery.objects.count() == 1
