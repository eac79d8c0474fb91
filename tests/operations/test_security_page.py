"""docs/security.md names the limits and headers that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalhub.teams import views
from evalhub.teams.models import SignInLink
from evalhub.teams.roles import Role
from evalhub.web.middleware import LONGEST_ADDRESS
from evaluators import patterns
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

PAGE = (Path(__file__).resolve().parents[2] / "docs/security.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_role_has_a_line():
    named = re.findall(r"^\| (\w+) \|", section("Who can do what"), re.MULTILINE)
    assert named == ["role", "anonymous", *Role.values, "operator"]


def test_it_names_the_limits_of_patterns():
    text = section("Patterns")
    assert f"{patterns.LONGEST:,} bytes" in text
    assert f"| {patterns.MOST_REPEATS:,} |" in text
    assert f"{patterns.SECONDS:g} s of processor time, 1 GB" in text
    assert f"| {patterns.SECONDS_IN_ALL:g} s of processor time |" in text


def test_it_names_the_limits_of_guesses():
    text = section("Sign-in")
    assert views.FREE_PER_PAIR == 5
    assert "Five wrong guesses per account and address are free" in text
    assert f"Each address has {views.FREE_PER_ADDRESS} free guesses" in text
    assert f"wait {views.FIRST_DELAY.seconds} s" in text
    assert views.LONGEST_DELAY.seconds == 3600
    assert f"for {SignInLink.LIFETIME.seconds // 60} minutes" in text


@pytest.mark.django_db
def test_pages_have_the_headers_that_it_names(client):
    text = section("Headers and cookies")
    headers = client.get("/sign-in/").headers
    for name in re.findall(r"`([A-Z][\w-]+): ", text):
        value = re.search(rf"`{name}: ([^`]+)`", text)
        assert value and headers[name] == value[1]
    assert {"Content-Security-Policy", "Permissions-Policy"} <= set(headers)
    assert f"{LONGEST_ADDRESS:,} characters" in text
