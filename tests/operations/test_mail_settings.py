"""The mail server and the address of links, as the environment has them."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalhub import environment

NAME = "EVALHUB_EMAIL_URL"


@pytest.mark.parametrize(
    ("url", "port", "user", "password", "ssl", "tls"),
    [
        ("smtp://mail.example.org", 25, "", "", False, False),
        ("smtp://ada:p%40ss@mail.example.org:587?tls=yes", 587, "ada", "p@ss", False, True),
        ("smtps://ada:pw@mail.example.org", 465, "ada", "pw", True, False),
    ],
)
def test_a_mail_server_is_read(
    monkeypatch: pytest.MonkeyPatch, url: str, port: int, user: str, password: str, ssl: bool, tls: bool
) -> None:
    monkeypatch.setenv(NAME, url)
    assert environment.mail_server(NAME) == {
        "EMAIL_HOST": "mail.example.org",
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": user,
        "EMAIL_HOST_PASSWORD": password,
        "EMAIL_USE_SSL": ssl,
        "EMAIL_USE_TLS": tls,
    }


def test_without_a_mail_server_there_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    assert environment.mail_server(NAME) == {}


@pytest.mark.parametrize(
    "url",
    ["mail.example.org", "http://ada:hush@mail.example.org", "smtp://", "smtp://a:x/", "smtp://a?starttls=1"],
)
def test_a_wrong_mail_server_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(NAME, url)
    with pytest.raises(ImproperlyConfigured, match="isn't a valid mail server URL") as refused:
        environment.mail_server(NAME)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("address", ["evals.example.org", "ftp://a", "https://", "https://a?b=c"])
def test_a_wrong_address_of_links_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("EVALHUB_URL", address)
    with pytest.raises(ImproperlyConfigured, match="Write an address such as"):
        environment.web_address("EVALHUB_URL", "https://evals.example.org")


def test_an_empty_address_of_links_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALHUB_URL", "")
    assert environment.web_address("EVALHUB_URL", "https://evals.example.org") == "https://evals.example.org"


def test_an_address_of_links_loses_its_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALHUB_URL", "https://example.org/evalhub/")
    assert environment.web_address("EVALHUB_URL", "") == "https://example.org/evalhub"
