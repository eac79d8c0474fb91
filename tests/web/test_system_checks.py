"""Mistakes in the settings are reported with what to do."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks

from evalhub.web.checks import TAG

SERVER = "postgresql://evalhub@db/evalhub"
TEAM = {"EMBEDDED": False, "SANDBOX": "require", "EGRESS": "internet"}


def ids() -> list[str | None]:
    found = run_checks(tags=[TAG])
    assert all(message.hint for message in found)
    return [message.id for message in found]


def test_the_embedded_mode_is_fine(settings):
    settings.DATABASE_URL = ""
    assert ids() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"DATABASE_URL": SERVER, "BROKER_URL": ""}, "evalhub.E001"),
        ({"SECRET_KEY": ""}, "evalhub.E002"),
        ({"ALLOWED_HOSTS": ["*"]}, "evalhub.W001"),
        ({**TEAM, "SANDBOX": "off"}, "evalhub.W002"),
        ({**TEAM, "SANDBOX": "prefer"}, "evalhub.W002"),
        ({**TEAM, "EGRESS": "full"}, "evalhub.W003"),
        ({**TEAM, "EGRESS_UNENFORCED": True}, "evalhub.W003"),
    ],
    ids=[
        "no broker",
        "no secret",
        "every host",
        "no sandbox",
        "perhaps a sandbox",
        "no filter",
        "perhaps a filter",
    ],
)
def test_a_wrong_setting_is_reported(settings, changes, expected):
    settings.DATABASE_URL = ""
    for name, value in changes.items():
        setattr(settings, name, value)
    assert ids() == [expected]


def test_a_server_with_everything_is_fine(settings):
    settings.DATABASE_URL, settings.BROKER_URL = SERVER, "redis://broker"
    settings.EMBEDDED, settings.SANDBOX, settings.ALLOWED_HOSTS = False, "require", ["evalhub.example"]
    settings.EGRESS = "internet"
    assert ids() == []
