"""A regression that somebody decides about while somebody else has its card open."""

from __future__ import annotations

import pytest

from runs.models import Alert
from tests.builders import make_compared, make_member
from tests.web.screen import parse

ADDRESS = "/p/tools/regressions/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def alert(version):
    make_compared(version, {"create": "pass", "export": "pass"}, trials=6)
    return Alert.objects.get(run=make_compared(version, {"create": "pass", "export": "fail"}, trials=6))


@pytest.fixture
def client(signed_in):
    return signed_in("runner")


def opened(client):
    return parse(client.get(ADDRESS, {"open": Alert.objects.get().pk}))


def drawn(client):
    """Return what a browser sends of a card as it was drawn, when nobody touches it."""
    hidden = opened(client).all("input[type=hidden][name^=was-]")
    was = {each["name"]: each["value"] for each in hidden}
    return {**was, **{name: was[f"was-{name}"] for name in ("assignee", "note", "link")}}


def test_untouched_fields_keep_someone_elses_changes(client, alert):
    sent = drawn(client)
    Alert.objects.update(note="It is the new flag.", state="investigating")
    client.post(f"{ADDRESS}{alert.pk}/", {**sent, "link": "https://tracker.example/1"}, headers=HTMX)
    alert.refresh_from_db()
    assert (alert.note, alert.state) == ("It is the new flag.", "investigating")
    assert alert.link == "https://tracker.example/1"


def test_a_former_assignee_keeps_the_name(client, alert, project):
    left = make_member(project, "runner", "grace")
    Alert.objects.update(assignee=left)
    left.memberships.all().delete()
    assert "grace (no longer a member)" in opened(client)
    client.post(f"{ADDRESS}{alert.pk}/", {**drawn(client), "note": "Who takes it?"}, headers=HTMX)
    alert.refresh_from_db()
    assert (alert.assignee, alert.note) == (left, "Who takes it?")
