"""A project's settings: itself, members, tokens, prices, the audit log."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.models import ApiToken, AuditEvent, Membership, Priority, Project
from runs.models import ModelPrice
from tests.builders import make_member, make_project
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ADDRESS = "/p/tools/settings/"
SETTINGS = {
    "notify_when": "confirmed",
    "alert_dearer": "on",
    "judge_labels": "30",
    "judge_rate": "0.7",
    "name": "Tools",
    "command_pattern": r"(?P<sub>\w+)",
    "judge": "gpt-4o-mini",
    "smallest_effect": "0.1",
    "priority": "0",
}
HTMX = {"HX-Request": "true", "HX-Target": "members"}


def actions():
    return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


def role_of(name):
    return Membership.objects.get(user__username=name).role


def test_it_shows_everybody_and_what_roles_may(signed_in, project):
    make_member(project, "viewer", "grace")
    page = parse(signed_in("viewer").get(ADDRESS))
    assert "grace" in page and "runs commands" not in page
    assert page.all("[name=command_pattern]") == [] and not any("Remove" in each for each in page.buttons)


def test_field_ids_are_unique(signed_in, project):
    text = signed_in().get(ADDRESS).content.decode()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert {"id_name", "member-name", "token-name", "member-role", "token-role"} <= set(ids)
    assert sorted(ids) == sorted(set(ids))


def test_an_admin_changes_the_project(signed_in, project):
    assert signed_in().post(ADDRESS, SETTINGS).url == ADDRESS
    project.refresh_from_db()
    assert (project.command_pattern, project.judge, project.smallest_effect) == (
        r"(?P<sub>\w+)",
        "gpt-4o-mini",
        0.1,
    )
    assert AuditEvent.objects.get().detail["changed"] == ["command_pattern", "judge", "smallest_effect"]


@pytest.mark.parametrize(("labels", "rate", "stored"), [("25", "0.6", (25, 0.6)), ("", "", (30, 0.7))])
def test_an_admin_says_when_a_judge_is_calibrated(signed_in, project, labels, rate, stored):
    signed_in().post(ADDRESS, {**SETTINGS, "judge_labels": labels, "judge_rate": rate})
    project.refresh_from_db()
    assert (project.judge_labels, project.judge_rate) == stored


def test_smallest_effects_are_set_by_measure(signed_in, project):
    client = signed_in()
    client.post(ADDRESS, {**SETTINGS, "smallest_effects": "trial/cost_usd 0.2, judge/judge 0.1"})
    project.refresh_from_db()
    assert project.smallest_effects == {"trial/cost_usd": 0.2, "judge/judge": 0.1}
    assert "trial/cost_usd 0.2" in parse(signed_in("viewer").get(ADDRESS))
    wrong = client.post(ADDRESS, {**SETTINGS, "smallest_effects": "cost 3"})
    assert "'cost 3' is not a measure with a number from 0 to 1" in parse(wrong)


def test_an_admin_limits_the_project_and_sets_its_priority(signed_in, project):
    assert signed_in().post(ADDRESS, {**SETTINGS, "most_trials": "20", "priority": "-1"}).url == ADDRESS
    project.refresh_from_db()
    assert (project.most_trials, project.priority) == (20, Priority.LOW)
    assert {"most_trials", "priority"} <= set(AuditEvent.objects.get().detail["changed"])
    page = parse(signed_in("viewer").get(ADDRESS))
    assert "Most trials at once 20" in page
    assert "Priority low" in page


def test_an_admin_chooses_when_alerts_are_raised_and_notified_of(signed_in, project):
    assert (project.notify_when, project.alert_dearer, project.alert_slower) == ("confirmed", True, False)
    given = {"notify_when": "at_once", "alert_dearer": "", "alert_slower": "on"}
    assert signed_in().post(ADDRESS, {**SETTINGS, **given}).url == ADDRESS
    project.refresh_from_db()
    assert (project.notify_when, project.alert_dearer, project.alert_slower) == ("at_once", False, True)
    page = parse(signed_in("viewer").get(ADDRESS))
    assert "at once, suspected or confirmed" in page
    assert "slower" in page


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("most_trials", "0", "greater than or equal to 1"),
        ("most_trials", "many", "Enter a whole number, such as 20, or leave it empty for no limit."),
        ("priority", "7", "Select a valid choice"),
        ("command_pattern", "(", "is not a regular expression"),
        ("diagnosis_thresholds", "colour 3", "is not a threshold with a number"),
        ("diagnosis_thresholds", "error_rate 2", "error_rate must be a number from 0 to 1, not 2."),
        ("diagnosis_thresholds", "commands 1.5", "commands must be a whole number from 1, not 1.5."),
        ("smallest_effect", "much", "Enter a number from 0 to 1"),
        ("smallest_effect", "2", "less than or equal to 1"),
        ("name", "", "This field is required."),
    ],
    ids=[
        "no trial",
        "no number",
        "no priority",
        "pattern",
        "no threshold",
        "share",
        "count",
        "word",
        "too large",
        "no name",
    ],
)
def test_invalid_values_are_reported_at_their_field(signed_in, project, field, value, sentence):
    response = signed_in().post(ADDRESS, {**SETTINGS, field: value})
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert Project.objects.get(pk=project.pk).judge == ""


def test_only_admins_change_the_project_and_its_members(signed_in, project):
    member = make_member(project, "viewer", "grace").memberships.get()
    client = signed_in("author")
    for path in ("", "members/", f"members/{member.pk}/role/", f"members/{member.pk}/remove/"):
        assert client.post(ADDRESS + path, SETTINGS).status_code == 403
    assert client.get(f"{ADDRESS}audit/").status_code == 403


def test_somebody_is_let_in_by_name(signed_in):
    get_user_model().objects.create_user("grace")
    signed_in().post(f"{ADDRESS}members/", {"name": "grace", "role": "author"})
    assert role_of("grace") == "author"
    assert actions() == ["member.add"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nobody", "There is no account 'nobody'."),
        ("grace", "grace is already a member (viewer)."),
        ("", "This field is required."),
    ],
)
def test_an_unknown_member_is_reported(signed_in, project, name, sentence):
    make_member(project, "viewer", "grace")
    response = signed_in().post(f"{ADDRESS}members/", {"name": name, "role": "author"})
    assert response.status_code == 422
    assert sentence in unescape(response.content.decode())
    assert role_of("grace") == "viewer"


def test_a_role_is_changed_in_place(signed_in, project):
    member = make_member(project, "viewer", "grace").memberships.get()
    response = signed_in().post(f"{ADDRESS}members/{member.pk}/role/", {"role": "runner"}, headers=HTMX)
    assert role_of("grace") == "runner"
    assert "<html" not in response.content.decode()
    assert AuditEvent.objects.get().detail == {"before": "viewer", "role": "runner"}


def test_an_unknown_role_is_reported(signed_in, project):
    member = make_member(project, "viewer", "grace").memberships.get()
    response = signed_in().post(f"{ADDRESS}members/{member.pk}/role/", {"role": "king"})
    assert response.status_code == 422
    assert "“king” is not a role." in parse(response)


def test_a_member_is_removed(signed_in, project):
    member = make_member(project, "viewer", "grace").memberships.get()
    shown = parse(signed_in().post(f"{ADDRESS}members/{member.pk}/remove/", follow=True))
    assert "Removed grace. Their tokens no longer work." in shown
    assert not Membership.objects.filter(pk=member.pk).exists()
    assert actions() == ["member.remove"]


@pytest.mark.parametrize("part", ["role", "remove"])
def test_the_last_admin_stays(signed_in, project, part):
    client = signed_in()
    member = Membership.objects.get(role="admin")
    response = client.post(f"{ADDRESS}members/{member.pk}/{part}/", {"role": "viewer"})
    assert response.status_code == 422
    assert "is the only admin of the project. Make someone else admin first." in parse(response)
    member.refresh_from_db()
    assert member.role == "admin"


@pytest.mark.parametrize("embedded", [True, False])
def test_an_admin_who_cannot_sign_in_keeps_no_project(signed_in, project, settings, embedded):
    settings.EMBEDDED = embedded
    make_member(project, "admin", "owner")
    client = signed_in()
    own = Membership.objects.exclude(user__username="owner").get()
    response = client.post(f"{ADDRESS}members/{own.pk}/role/", {"role": "viewer"}, headers=HTMX)
    assert response.status_code == (200 if embedded else 422)


def test_who_changes_their_own_role_gets_a_fresh_page(signed_in, project):
    make_member(project, "admin", "grace", password="correct horse")  # of a test
    client = signed_in()
    own = Membership.objects.exclude(user__username="grace").get()
    response = client.post(f"{ADDRESS}members/{own.pk}/role/", {"role": "viewer"}, headers=HTMX)
    assert response.headers["HX-Refresh"] == "true"


def test_another_projects_member_is_not_found(signed_in):
    member = make_member(make_project("other"), "viewer").memberships.get()
    assert signed_in().post(f"{ADDRESS}members/{member.pk}/remove/").status_code == 404


def test_a_token_is_shown_once(signed_in):
    client = signed_in("runner")
    response = client.post(f"{ADDRESS}tokens/", {"name": "ci", "role": "runner", "days": "30"})
    secret = parse(response).region("Token").text
    assert response.content.decode().count(secret) == 1
    assert response.headers["Cache-Control"] == "no-store"
    assert secret not in client.get(ADDRESS).content.decode()
    token = ApiToken.find(secret, now=timezone.now())
    assert timedelta(days=29) < token.expires - timezone.now() < timedelta(days=31)


def test_a_token_may_no_more_than_its_maker(signed_in):
    response = signed_in("viewer").post(f"{ADDRESS}tokens/", {"name": "ci", "role": "admin", "days": ""})
    assert response.status_code == 422
    assert "Your role here is viewer, so a token can't be admin." in parse(response)
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked(signed_in):
    client = signed_in()
    client.post(f"{ADDRESS}tokens/", {"name": "ci", "role": "viewer", "days": ""})
    client.post(f"{ADDRESS}tokens/{ApiToken.objects.get().pk}/revoke/")
    assert ApiToken.objects.get().revoked
    assert "No tokens yet." in parse(client.get(ADDRESS)).region("API tokens")
    assert actions() == ["token.create", "token.revoke"]


def test_tokens_of_others_are_an_admins_only(signed_in, project):
    token, _ = ApiToken.issue(project, make_member(project, "author"), name="theirs", role="viewer")
    for role, count in (("viewer", "0 of yours"), ("admin", "1 in this project")):
        page = parse(signed_in(role).get(ADDRESS))
        assert count in page.region("API tokens")
        assert ("Tokens" in page.tables) == (role == "admin")
    assert page.table("Tokens").row("theirs").button("Revoke theirs")
    text = parse(signed_in("viewer").post(f"{ADDRESS}tokens/{token.pk}/revoke/", follow=True))
    assert "You have no such token." in text
    assert ApiToken.objects.get().revoked is None


PRICE = {"model": "gpt-5", "input_per_million": "2.5", "output_per_million": "10", "since": "2026-11-01"}


def test_a_price_is_added_and_removed(signed_in):
    client = signed_in()
    client.post(f"{ADDRESS}prices/", PRICE)
    price = ModelPrice.objects.get()
    text = parse(client.get(f"{ADDRESS}prices/"))
    assert "gpt-5" in text and "$2.50" in text and "1 Nov 2026" in text
    client.post(f"{ADDRESS}prices/{price.pk}/remove/")
    assert not ModelPrice.objects.exists()
    assert actions() == ["price.add", "price.remove"]


def test_rates_of_the_cache_are_optional(signed_in):
    client = signed_in()
    client.post(f"{ADDRESS}prices/", PRICE)
    assert ModelPrice.objects.get().value.cache_read_per_million is None
    rates = {"cache_read_per_million": "0.25", "cache_write_1h_per_million": "5"}
    client.post(f"{ADDRESS}prices/", {**PRICE, **rates, "since": "2026-11-02"})
    text = parse(client.get(f"{ADDRESS}prices/"))
    assert "$0.25" in text and "$5.00" in text
    newest = ModelPrice.objects.get(since="2026-11-02").value
    assert (newest.cache_read_per_million, newest.cache_write_per_million) == (0.25, None)
    assert newest.cache_write_1h_per_million == 5


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cache_write_per_million": "-1"}, "greater than or equal to 0"),
        ({"input_per_million": "-1"}, "greater than or equal to 0"),
        ({"input_per_million": "nan"}, "Enter a number, such as 2.50."),
        ({"since": "today"}, "Enter a date as YYYY-MM-DD"),
        ({}, "This model already has a price from that date."),
    ],
    ids=["negative cache", "negative", "nan", "day", "twice"],
)
def test_an_invalid_price_is_reported(signed_in, project, changes, sentence):
    client = signed_in()
    client.post(f"{ADDRESS}prices/", PRICE)
    response = client.post(f"{ADDRESS}prices/", {**PRICE, **changes})
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert ModelPrice.objects.count() == 1


def read_cancelled(page):
    """Return the runs that were cancelled, in the order of the audit log."""
    return [row.cell("What").text.split("cancelled ")[1] for row in page.table("Audit log").rows]


def test_the_audit_log_pages_by_key(signed_in, project):
    for number in range(52):
        audit.append_event(project, None, "run.cancel", f"run {number}")
    audit.append_event(make_project("other"), None, "run.cancel", "run of others")
    client = signed_in()
    first = parse(client.get(f"{ADDRESS}audit/"))
    assert read_cancelled(first) == [f"run {number}" for number in range(51, 1, -1)]
    rest = client.get(f"{ADDRESS}audit/{first.link('Older ›').address}")
    assert read_cancelled(parse(rest)) == ["run 1", "run 0"]


@pytest.mark.parametrize(
    ("action", "subject", "detail", "sentence"),
    [
        ("member.role", "ada", {"role": "author"}, "ada-admin set the role of ada to author"),
        ("suite.upload", "basics", {"version": 2, "new": True}, "ada-admin uploaded the suite basics version 2"),
        ("suite.upload", "basics", {}, "ada-admin uploaded the suite basics"),
        ("member.invite", "grace@example.org", {"role": "author"}, "ada-admin invited grace@example.org as author"),
        ("suite.upload", "grace@example.org", {}, "ada-admin uploaded the suite [REDACTED_EMAIL]"),
        ("run.tags", "run 1", {"tags": ["a", "b"]}, "ada-admin changed the tags of run 1 to a, b"),
        ("sign-in.link", "", {}, "ada-admin signed in with a link"),
    ],
)  # fmt: skip
def test_the_audit_log_has_sentences_and_the_raw_entry(signed_in, project, action, subject, detail, sentence):
    audit.append_event(project, make_member(project, name="ada-admin"), action, subject, **detail)
    row = parse(signed_in().get(f"{ADDRESS}audit/")).table("Audit log").rows[0]
    assert row.cell("What").text == sentence
    assert action in row.cell("Raw")


def test_the_audit_log_can_be_narrowed_to_an_action(signed_in, project):
    audit.append_event(project, None, "run.cancel", "run 1")
    audit.append_event(project, None, "suite.upload", "<b>basics</b>")
    page = parse(signed_in().get(f"{ADDRESS}audit/?action=suite.upload"))
    (row,) = page.table("Audit log").rows
    assert row.link("suite.upload").address == "?action=suite.upload"
    assert "<b>basics</b>" in row.cell("What")
    assert "Action suite.upload" in page


@pytest.mark.spec("llm-tool-test", "Recommended small judges")
def test_it_offers_the_recommended_judge_of_a_provider_with_a_key(signed_in, project, monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    client = signed_in()
    assert "Recommended:" not in parse(client.get(ADDRESS))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    page = parse(client.get(ADDRESS))
    assert "Recommended: anthropic/claude-haiku-4-5." in page.field("Default judge").hint
    assert [each["value"] for each in page.all("datalist option")] == ["anthropic/claude-haiku-4-5"]


def test_thresholds_of_the_diagnosis_are_changed_by_name(signed_in, project):
    signed_in().post(ADDRESS, {**SETTINGS, "diagnosis_thresholds": "error_rate 0.4, commands 30"})
    project.refresh_from_db()
    assert project.diagnosis_thresholds == {"error_rate": 0.4, "commands": 30}
    page = parse(signed_in().get(ADDRESS))
    assert page.all("[name=diagnosis_thresholds]")[0]["value"] == "commands 30, error_rate 0.4"
    assert "commands 30, error_rate 0.4" in parse(signed_in("viewer").get(ADDRESS))
