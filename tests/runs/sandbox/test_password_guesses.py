"""Guessing passwords: at the door, side by side, through proxies, and with a session that somebody left open."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection
from django.test import Client
from django.utils import timezone

from evalhub.teams.models import PasswordGuesses
from evalhub.teams.views import FREE_PER_ADDRESS, FREE_PER_PAIR, admit, forget
from evalhub.web.middleware import client_address
from tests.commands.calling import call
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

PASSWORD = "a long enough one"
HERE, THERE = "203.0.113.1", "203.0.113.2"


@pytest.fixture
def ada(db):
    return get_user_model().objects.create_user("ada", password=PASSWORD)


def sign_in(password="wrong", name="ada", address=HERE, **more):
    return Client().post("/sign-in/", {"username": name, "password": password}, REMOTE_ADDR=address, **more)


def later(**by):
    PasswordGuesses.objects.update(last=timezone.now() - timedelta(**by))


@pytest.mark.django_db(transaction=True)
def test_sixteen_guesses_at_once_are_five_at_most():
    get_user_model().objects.create_user("ada", password=PASSWORD)

    def guess(number):
        try:
            return sign_in(f"guess {number}").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(guess, range(16)))
    assert (found.count(200), found.count(429)) == (FREE_PER_PAIR, 16 - FREE_PER_PAIR)


@pytest.mark.django_db(transaction=True)
def test_names_guessed_at_once_count_for_the_address():
    def guess(number):
        try:
            return admit(HERE, f"name {number}", now=timezone.now())
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(guess, range(32)))
    assert found.count(0) == FREE_PER_ADDRESS


def test_strangers_cannot_lock_the_owner_out(ada):
    for number in range(30):
        for _ in range(FREE_PER_PAIR + 1):
            sign_in(address=f"198.51.100.{number}")
    assert sign_in(PASSWORD).status_code == 302


def test_the_delay_doubles_up_to_an_hour(ada):
    waits = []
    now = timezone.now()
    for _ in range(FREE_PER_PAIR + 12):
        if wait := admit(HERE, "ada", now=now):
            waits.append(wait)
            now += timedelta(seconds=wait)
            assert admit(HERE, "ada", now=now) == 0
    assert waits[:3] == [30, 60, 120]
    assert waits[-1] == 3600


def test_a_guess_that_came_too_soon_says_when_to_try_again(ada):
    for _ in range(FREE_PER_PAIR):
        assert sign_in().status_code == 200
    response = sign_in(PASSWORD)
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 30
    assert "Too many failed attempts. Try again in" in response.content.decode()
    later(seconds=31)
    assert sign_in(PASSWORD).status_code == 302


def test_a_guess_that_came_too_soon_lengthens_nothing(ada):
    for _ in range(FREE_PER_PAIR + 20):
        sign_in()
    later(seconds=31)
    assert sign_in(PASSWORD).status_code == 302


def test_who_signs_in_starts_from_nothing(ada):
    for _ in range(3):
        for _ in range(FREE_PER_PAIR - 1):
            sign_in()
        assert sign_in(PASSWORD).status_code == 302


def test_an_own_account_gives_no_more_guesses(ada):
    get_user_model().objects.create_user("eve", password=PASSWORD)
    evaluated = 0
    for number in range(FREE_PER_ADDRESS * 2):
        sign_in(PASSWORD, name="eve")
        evaluated += sign_in(name=f"victim {number}").status_code == 200
    assert evaluated == FREE_PER_ADDRESS


def test_after_a_day_guesses_are_forgotten_and_removed(ada):
    for _ in range(FREE_PER_PAIR + 1):
        sign_in()
    later(hours=25)
    sign_in(name="other", address=THERE)
    assert PasswordGuesses.objects.count() == 2
    assert admit(HERE, "ada", now=timezone.now()) == 0


def test_addresses_of_one_ipv6_network_are_one(db):
    for number in range(FREE_PER_PAIR):
        assert admit(f"2001:db8::{number}", "ada", now=timezone.now()) == 0
    assert admit("2001:db8::ffff", "ada", now=timezone.now()) > 0
    assert admit("2001:db8:0:1::1", "ada", now=timezone.now()) == 0


def test_upper_case_is_no_way_around(db):
    for name in ("ada", "Ada", "ADA", "aDa", "adA"):
        admit(HERE, name, now=timezone.now())
    assert admit(HERE, "AdA", now=timezone.now()) > 0


def test_a_right_guess_is_taken_back(db):
    for number in range(FREE_PER_ADDRESS + 5):
        assert admit(HERE, f"name {number}", now=timezone.now()) == 0
        forget(HERE, f"name {number}")


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "address"),
    [
        pytest.param([], HERE, THERE, HERE, id="no proxy is trusted"),
        pytest.param(["10.0.0.0/8"], HERE, THERE, HERE, id="a stranger forwards"),
        pytest.param(["10.0.0.0/8"], "10.0.0.9", THERE, THERE, id="one proxy"),
        pytest.param(["10.0.0.0/8"], "10.0.0.9", f"1.2.3.4, {THERE}", THERE, id="a forged hop before"),
        pytest.param(["10.0.0.0/8"], "10.0.0.9", f"{THERE},10.0.0.7", THERE, id="two proxies"),
        pytest.param(["10.0.0.0/8"], "10.0.0.9", "10.0.0.7", "10.0.0.7", id="proxies alone"),
        pytest.param(["10.0.0.0/8"], "10.0.0.9", f"{THERE}, nonsense", "10.0.0.9", id="no address"),
        pytest.param(["10.0.0.0/8"], "10.0.0.9", "", "10.0.0.9", id="nothing forwarded"),
        pytest.param(["unix"], "", THERE, THERE, id="a Unix socket"),
        pytest.param(["10.0.0.0/8"], "", THERE, "", id="a Unix socket that is not trusted"),
        pytest.param(["::1"], "::1", "2001:db8::5", "2001:db8::5", id="IPv6"),
        pytest.param(["10.0.0.0/8"], "::ffff:10.0.0.9", THERE, THERE, id="IPv4 in IPv6"),
    ],
)
def test_the_address_is_that_before_trusted_proxies(rf, settings, trusted, peer, forwarded, address):
    settings.TRUSTED_PROXIES = trusted
    request = rf.get("/", REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR=forwarded)
    assert client_address(request) == address


def test_a_forged_address_gives_no_more_guesses(ada, settings):
    settings.TRUSTED_PROXIES = ["10.0.0.0/8"]
    found = [sign_in(HTTP_X_FORWARDED_FOR=f"198.51.100.{number}").status_code for number in range(8)]
    assert found.count(200) == FREE_PER_PAIR


class CountedHasher(MD5PasswordHasher):
    """Counts how often a password is hashed, which is what takes the time."""

    hashed = 0

    def encode(self, password, salt):
        CountedHasher.hashed += 1
        return super().encode(password, salt)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["ada", "nobody", "switched off", "no password"])
def test_every_wrong_guess_gets_the_same_answer(settings, name):
    settings.PASSWORD_HASHERS = [f"{__name__}.CountedHasher"]
    users = get_user_model().objects
    users.create_user("ada", password=PASSWORD)
    users.create_user("switched off", password=PASSWORD, is_active=False)
    users.create_user("no password")
    CountedHasher.hashed = 0
    guess = "wrong" if name == "ada" else PASSWORD
    response = sign_in(guess, name=name)
    assert (response.status_code, CountedHasher.hashed) == (200, 1)
    assert "Wrong name or password." in response.content.decode()


def change(client, old, new="quite another one"):
    given = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/password/", given, REMOTE_ADDR=HERE)


def test_the_old_password_cannot_be_guessed_for_ever(client, ada):
    client.force_login(ada)
    assert [change(client, "wrong").status_code for _ in range(7)] == [200] * FREE_PER_PAIR + [429] * 2
    assert change(client, PASSWORD).status_code == 429
    later(seconds=61)
    assert change(client, PASSWORD).status_code == 302


@pytest.mark.django_db
def test_a_password_like_the_name_is_refused(client, monkeypatch):
    eve = get_user_model().objects.create_user("evelyn-hamilton", password=PASSWORD)
    client.force_login(eve)
    page = change(client, PASSWORD, "evelyn-hamilton1").content.decode()
    assert "too similar to the username" in page
    monkeypatch.setattr(sys, "stdin", io.StringIO("evelyn-hamilton2\n"))
    ended = call("create_user", "evelyn-hamilton9")
    assert (ended.code, "too similar to the username" in ended.err) == (2, True)


def test_a_link_works_while_passwords_are_throttled(ada, settings):
    settings.EMBEDDED = False
    settings.ALLOWED_HOSTS = ["evals.example.org", "testserver"]
    for _ in range(FREE_PER_PAIR + 1):
        sign_in()
    link = call("signin_link", "--user", "ada", "--json").document["link"]
    assert link.startswith("https://evals.example.org/sign-in/link/")
    client = Client()
    response = client.post(link.removeprefix("https://evals.example.org"), REMOTE_ADDR=HERE)
    assert response.status_code == 302
    assert client.session["_auth_user_id"] == str(ada.pk)
