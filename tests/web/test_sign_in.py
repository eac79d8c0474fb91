"""Getting in and out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from evalhub.teams.models import SignInLink
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

PASSWORD = "a long enough one"


@pytest.fixture
def ada(db):
    return get_user_model().objects.create_user("ada", password=PASSWORD)


def sign_in(client, password=PASSWORD, name="ada", address="10.0.0.1"):
    return client.post("/sign-in/", {"username": name, "password": password}, REMOTE_ADDR=address)


def test_it_works(client, ada):
    response = sign_in(client)
    assert (response.status_code, response.url) == (302, "/")


def test_it_leads_on_to_the_page_that_was_asked_for(client, ada):
    page = client.get("/sign-in/?next=/p/tools/runs/")
    assert [each["value"] for each in parse(page).all("input[name=next]")] == ["/p/tools/runs/"]


def test_it_does_not_lead_to_other_sites(client, ada):
    given = {"username": "ada", "password": PASSWORD, "next": "https://elsewhere.example/"}
    assert client.post("/sign-in/", given).url == "/"


def test_it_refuses_a_wrong_password(client, ada):
    response = sign_in(client, "wrong")
    assert "Wrong name or password." in parse(response)
    assert "_auth_user_id" not in client.session


def test_signing_out_ends_the_session_and_takes_a_post(client, ada):
    client.force_login(ada)
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/").url == "/sign-in/"
    assert "_auth_user_id" not in client.session


def test_the_password_can_be_changed(client, ada):
    client.force_login(ada)
    new = {"old_password": PASSWORD, "new_password1": "another long one", "new_password2": "another long one"}
    assert client.post("/password/", new).url == "/"
    ada.refresh_from_db()
    assert ada.check_password("another long one")


def test_the_owner_without_a_password_can_set_one(client, ada):
    ada.set_unusable_password()
    ada.save()
    client.force_login(ada)
    assert "Old password" not in parse(client.get("/password/"))
    client.post("/password/", {"new_password1": "another long one", "new_password2": "another long one"})
    ada.refresh_from_db()
    assert ada.check_password("another long one")


@pytest.fixture
def address(ada, settings):
    settings.EMBEDDED = True
    return f"/sign-in/link/{SignInLink.issue(ada)}/"


def test_a_sign_in_link_is_used_only_by_its_button(client, address):
    for _ in range(2):
        page = client.get(address)
        assert page.content.decode().count("<button") == 1
    assert client.post(address).url == "/"
    assert "_auth_user_id" in client.session


def test_a_link_works_once(client, address):
    client.post(address)
    again = Client().post(address)
    assert again.status_code == 410
    assert "manage.py signin_link" in parse(again)


def test_a_link_works_for_15_minutes(client, address):
    SignInLink.objects.update(created=timezone.now() - timedelta(minutes=16))
    assert client.get(address).status_code == 410
    assert client.post(address).status_code == 410


def test_an_invalid_link_says_how_to_get_a_new_one(client, address):
    response = client.get("/sign-in/link/guessed/")
    assert response.status_code == 410
    assert "manage.py signin_link" in parse(response)


def test_a_link_leaks_into_no_cache_and_no_other_site(client, address):
    response = client.get(address)
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_signs_nobody_in(address, site):
    client = Client(enforce_csrf_checks=True)
    response = client.post(address, headers={"Origin": "null", "Sec-Fetch-Site": site})
    assert response.status_code == 403
    assert "comes from another site" in parse(response)
    assert "_auth_user_id" not in client.session
    assert client.post(address, headers={"Origin": "null", "Sec-Fetch-Site": "same-origin"}).url == "/"


def test_links_are_for_loopback_only(client, address):
    assert client.get(address, REMOTE_ADDR="192.168.0.9").status_code == 404


def test_links_of_a_server_work_from_elsewhere(client, address, settings):
    settings.EMBEDDED = False
    assert client.post(address, REMOTE_ADDR="192.168.0.9").url == "/"
