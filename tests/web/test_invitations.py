"""Invitations: one use, a week, with an account or without."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from evalhub.teams.models import AuditEvent, Invitation, Membership, Project
from tests.builders import make_member, make_project
from tests.web.screen import parse

SETTINGS = "/p/tools/settings/"
ACCOUNT = {"username": "grace", "password1": "correct horse battery", "password2": "correct horse battery"}

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.fixture
def admin():
    client = Client()
    client.force_login(make_member(make_project(), "admin", "ada"))
    return client


def invited(admin, **given):
    """Return the path of a new invitation's link, and the page that shows it."""
    page = parse(admin.post(f"{SETTINGS}invitations/", {"role": "author", **given}))
    return urlsplit(page.region("Invitation link").text).path, page


def test_a_new_member_creates_an_account_by_the_link(admin):
    link, _ = invited(admin, email="grace@example.org")
    guest = Client()
    assert "ada invites you as author" in parse(guest.get(link))
    assert guest.post(link, ACCOUNT).url == "/p/tools/"
    member = Membership.objects.get(user__username="grace")
    assert (member.role, member.user.email) == ("author", "grace@example.org")
    assert guest.get("/p/tools/").status_code == 200
    actions = list(AuditEvent.objects.values_list("action", "subject").order_by("pk"))
    assert actions == [("member.invite", "grace@example.org"), ("member.join", "Tools")]


def test_it_works_once(admin):
    link, _ = invited(admin)
    assert Client().post(link, ACCOUNT).status_code == 302
    again = Client().post(link, {**ACCOUNT, "username": "linus"})
    assert again.status_code == 410
    assert "This invitation no longer works" in parse(again)
    assert not Membership.objects.filter(user__username="linus").exists()


@pytest.mark.parametrize("ends", ["expired", "withdrawn", "inviter left"])
def test_it_ends(admin, ends):
    link, page = invited(admin)
    assert "It works once, until" in page
    if ends == "expired":
        Invitation.objects.update(created=timezone.now() - timedelta(days=8))
    elif ends == "withdrawn":
        pk = Invitation.objects.get().pk
        assert "Invitation withdrawn" in parse(
            admin.post(f"{SETTINGS}invitations/{pk}/withdraw/", follow=True)
        )
    else:
        Membership.objects.update(role="viewer")
    assert Client().post(link, ACCOUNT).status_code == 410


def test_an_account_that_is_signed_in_joins_and_keeps_its_role(admin):
    link, _ = invited(admin)
    guest = Client()
    guest.force_login(make_member(make_project("other"), "viewer", "linus"))
    assert "You are signed in as linus." in parse(guest.get(link))
    assert guest.post(link).url == "/p/tools/"
    assert Membership.objects.get(user__username="linus", project__slug="tools").role == "author"
    link, _ = invited(admin)
    assert admin.post(link).status_code == 302
    assert Membership.objects.get(user__username="ada").role == "admin"


def test_a_bad_account_leaves_the_invitation_open(admin):
    link, _ = invited(admin)
    answer = Client().post(link, {**ACCOUNT, "password2": "other"})
    assert answer.status_code == 422
    assert Client().post(link, ACCOUNT).status_code == 302


@pytest.mark.parametrize(
    ("server", "sentence", "sent"),
    [(True, "Sent to grace@example.org.", 1), (False, "No mail server is set up", 0)],
)
def test_the_link_is_sent_where_mail_is_set_up(admin, settings, server, sentence, sent):
    settings.MAIL_SERVER = server
    link, page = invited(admin, email="grace@example.org")
    assert sentence in page
    assert [link in each.body for each in mail.outbox] == [True] * sent


def test_a_refused_mail_is_reported(admin, settings):
    settings.MAIL_SERVER, settings.EMAIL_PORT = True, 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    assert "The mail server didn't accept" in invited(admin, email="grace@example.org")[1]


def test_open_invitations_are_listed_without_their_secret(admin):
    link, _ = invited(admin, email="grace@example.org")
    text = admin.get(SETTINGS).content.decode()
    assert "grace@example.org as author" in parse(text).region("Open invitations")
    assert link not in text


def test_a_wrong_address_is_named(admin):
    answer = admin.post(f"{SETTINGS}invitations/", {"role": "author", "email": "grace"})
    assert answer.status_code == 422
    assert "This is not an e-mail address." in parse(answer)


def test_an_admin_creates_a_project(admin):
    assert admin.post("/projects/new/", {"name": "Our Tool", "slug": ""}).url == "/p/our-tool/"
    assert Membership.objects.get(project__slug="our-tool").role == "admin"
    assert "New project…" in parse(admin.get("/projects/")).links


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"name": "Tools", "slug": "tools"}, "A project with this short name exists."),
        ({"name": "汉", "slug": ""}, "Enter a short name, such as our-tool."),
        ({"name": "x", "slug": "a b"}, "Use letters, digits and hyphens only"),
    ],
)
def test_a_bad_project_is_refused(admin, given, sentence):
    answer = admin.post("/projects/new/", given)
    assert answer.status_code == 422
    assert sentence in parse(answer)
    assert Project.objects.count() == 1


def test_who_is_no_admin_creates_no_project():
    client = Client()
    client.force_login(make_member(make_project(), "author"))
    assert client.post("/projects/new/", {"name": "x"}).status_code == 403
    assert "New project…" not in parse(client.get("/projects/")).links
