"""A regression that somebody decides about while somebody else has its card open."""

from __future__ import annotations

from html import unescape

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


def drawn(client):
    """Return what a browser sends of a card as it was drawn, when nobody touches it."""
    hidden = parse(client.get(ADDRESS)).all("input[type=hidden][name^=was-]")
    was = {each["name"]: each["value"] for each in hidden}
    return {**was, **{name: was[f"was-{name}"] for name in ("assignee", "due", "note", "link")}}


def test_untouched_fields_keep_someone_elses_changes(client, alert):
    sent = drawn(client)
    Alert.objects.update(note="It is the new flag.", state="investigating")
    client.post(f"{ADDRESS}{alert.pk}/", {**sent, "due": "2026-12-01"}, headers=HTMX)
    alert.refresh_from_db()
    assert (alert.note, alert.state, f"{alert.due}") == ("It is the new flag.", "investigating", "2026-12-01")


@pytest.mark.parametrize(
    ("name", "label", "theirs", "mine"),
    [
        ("note", "note", "It is\nthe flag.", "Chance."),
        ("state", "state", "fixed", "acknowledged"),
        ("due", "due date", "2026-12-01", "2027-01-01"),
    ],
)
def test_a_conflicting_change_is_refused_once_then_saved(client, alert, name, label, theirs, mine):
    sent = drawn(client)
    Alert.objects.update(**{name: theirs})
    refused = client.post(f"{ADDRESS}{alert.pk}/", {**sent, name: mine}, headers=HTMX)
    assert refused.status_code == 422
    sentence = f"Someone changed the {label} to “{theirs}” in the meantime. Save again to overwrite it."
    assert sentence in unescape(refused.content.decode())
    assert f"{getattr(Alert.objects.get(), name)}" == theirs
    again = {**sent, f"was-{name}": theirs.replace("\n", "\r\n"), name: mine}
    assert client.post(f"{ADDRESS}{alert.pk}/", again, headers=HTMX).status_code == 200
    assert f"{getattr(Alert.objects.get(), name)}" == mine


def test_the_same_word_twice_is_one(client, alert):
    sent = drawn(client)
    Alert.objects.update(state="fixed", note="Done.")
    both = {**sent, "state": "fixed", "note": "Done."}
    assert client.post(f"{ADDRESS}{alert.pk}/", both, headers=HTMX).status_code == 200


def test_a_former_assignee_keeps_the_name(client, alert, project):
    left = make_member(project, "runner", "grace")
    Alert.objects.update(assignee=left)
    left.memberships.all().delete()
    assert "grace (no longer a member)" in parse(client.get(ADDRESS))
    client.post(f"{ADDRESS}{alert.pk}/", {**drawn(client), "note": "Who takes it?"}, headers=HTMX)
    alert.refresh_from_db()
    assert (alert.assignee, alert.note) == (left, "Who takes it?")
