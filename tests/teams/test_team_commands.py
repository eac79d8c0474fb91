"""People, tokens and sign-in links from the command line."""

from __future__ import annotations

import io
import sys

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.utils import timezone

from evalhub.teams.access import default_project
from evalhub.teams.models import ApiToken, AuditEvent, Membership, Project
from tests.builders import make_member, make_project
from tests.commands.calling import call

pytestmark = pytest.mark.django_db
SECRET = "a long enough secret"


def typed(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(password + "\n"))


def test_signin_link_prints_one_for_this_machine_only(settings):
    assert "http://127.0.0.1:9001/sign-in/link/" in call("signin_link", "--port", "9001").out
    assert (
        call("signin_link", "--port", "9001", "--json").document["link"].startswith("http://127.0.0.1:9001/")
    )
    settings.EMBEDDED = False
    ended = call("signin_link")
    assert (ended.code, "Say with --user who the link signs in" in ended.err) == (2, True)
    ended = call("signin_link", "--user", "nobody")
    assert (ended.code, "There is no user 'nobody'" in ended.err) == (2, True)


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999999", "x"])
def test_signin_link_refuses_an_invalid_port(port):
    with pytest.raises(CommandError, match="is not a port: give a number from 1 to 65535"):
        call_command("signin_link", "--port", port)


def test_create_user_makes_a_member(monkeypatch):
    typed(monkeypatch, SECRET)
    ended = call("create_user", "ada", "--role", "author", "--json")
    ada = get_user_model().objects.get(username="ada")
    assert ada.check_password(SECRET)
    assert Membership.objects.get(user=ada).role == "author"
    assert AuditEvent.objects.filter(action="member.role", subject="ada").exists()
    assert ended.document == {"name": "ada", "role": "author", "project": "default"}


def test_create_user_sets_the_address_of_an_account(monkeypatch):
    make_member(default_project(), "author", "ada")
    assert call("create_user", "ada", "--email", "ada@example.org").out.strip() == "ada is author of Default."
    assert get_user_model().objects.get(username="ada").email == "ada@example.org"
    ended = call("create_user", "ada", "--email", "ada")
    assert ended.code != 0
    assert "'ada' is not an e-mail address. Write one such as ada@example.org." in ended.err


def test_create_user_makes_a_project_that_is_missing(monkeypatch):
    typed(monkeypatch, SECRET)
    assert call("create_user", "ada", "--project", "tools").out.strip() == "ada is viewer of tools."


@pytest.mark.parametrize(
    ("name", "project", "password", "sentence"),
    [
        pytest.param("ada", None, "1234", "too short", id="password"),
        pytest.param("", None, SECRET, "The username '' is not valid.", id="no name"),
        pytest.param("a b", None, SECRET, "The username 'a b' is not valid.", id="name"),
        pytest.param("x" * 200, None, SECRET, "at most 150 characters", id="long name"),
        pytest.param("ada", "Bad slug!", SECRET, "The slug 'Bad slug!' is not valid.", id="slug"),
    ],
)
def test_create_user_creates_no_one_on_errors(monkeypatch, name, project, password, sentence):
    typed(monkeypatch, password)
    ended = call("create_user", name, *(["--project", project] if project else []))
    assert (ended.code, sentence in ended.err) == (2, True)
    assert not get_user_model().objects.exists()
    assert not Project.objects.filter(slug="Bad slug!").exists()


def test_create_user_changes_the_role_of_one_there_is():
    make_member(default_project(), "viewer", "ada")
    assert call("create_user", "ada", "--role", "admin").code == 0
    assert Membership.objects.get(user__username="ada").role == "admin"


def test_create_user_keeps_the_role_without_the_option():
    make_member(default_project(), "admin", "ada")
    assert "ada is admin of " in call("create_user", "ada").out
    assert Membership.objects.get(user__username="ada").role == "admin"


def test_create_token_prints_the_secret_once():
    document = call("create_token", "ci", "--role", "runner", "--json").document
    token = ApiToken.find(document["token"], now=timezone.now())
    assert token is not None
    assert (token.role, token.project.slug, token.expires) == ("runner", "default", None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["", "--user", "ada"], "The name '' is not valid.", id="no name"),
        pytest.param(["x" * 81, "--user", "ada"], "at most 80 characters", id="long name"),
        pytest.param(["ci", "--user", "ada", "--role", "admin"], "Choose a lower role.", id="role"),
        pytest.param(["ci", "--user", "eve"], "eve is not a member of project 'default'", id="no member"),
        pytest.param(["ci", "--user", "bob"], "There is no user 'bob'.", id="no user"),
    ],
)
def test_create_token_refuses_and_makes_none(words, sentence):
    make_member(make_project("others"), "admin", "eve")
    make_member(default_project(), "runner", "ada")
    ended = call("create_token", *words)
    assert (ended.code, sentence in ended.err) == (2, True)
    assert not ApiToken.objects.exists()


def test_create_token_asks_on_a_server_whose_it_is(settings):
    settings.EMBEDDED = False
    ended = call("create_token", "ci")
    assert (ended.code, "Say with --user whose token it is" in ended.err) == (2, True)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("days", ["0", "-3", "99999999999", "x"])
def test_create_token_refuses_an_invalid_number_of_days(days):
    with pytest.raises(CommandError, match="is not a number of days: give one from 1 to 36500"):
        call_command("create_token", "ci", "--days", days)


def test_an_account_that_is_switched_off_gets_neither_token_nor_role():
    make_member(default_project(), "runner", "ada")
    get_user_model().objects.update(is_active=False)
    for words in (["create_token", "ci", "--user", "ada"], ["create_user", "ada", "--role", "admin"]):
        ended = call(*words)
        assert (ended.code, "The account of ada is switched off" in ended.err) == (2, True)
    assert not ApiToken.objects.exists()
    assert Membership.objects.get(user__username="ada").role == "runner"
