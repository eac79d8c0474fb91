"""Who a token is, and tokens over REST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evalhub.teams.models import ApiToken, AuditEvent, Membership
from tests.builders import make_member, make_project

pytestmark = pytest.mark.one_database


def test_it_gives_the_tokens_own_project(api, project):
    (found,) = api("runner").get("/projects").json()["items"]
    assert (found["slug"], found["role"]) == (project.slug, "runner")
    assert api().get("/projects/tools").json()["name"] == "Tools"


def test_it_does_not_tell_another_project_from_none(api, project):
    make_project("other")
    answers = [api().get(f"/projects/{slug}") for slug in ("other", "nowhere")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json()["detail"] == answers[1].json()["detail"].replace("nowhere", "other")


def test_a_project_has_its_own_address_too(api, project):
    make_project("other")
    assert api().get("/projects/tools/suites").status_code == 200
    assert api().get("/projects/other/suites").status_code == 404


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer nonsense", "Basic abc", "Bearer ü"], ids=repr)
def test_it_requires_a_valid_token(client, db, header):
    response = client.get("/api/v1/suites", headers={"Authorization": header} if header else {})
    assert response.status_code == 401
    assert response.json()["id"] == "api/unauthenticated"
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_session_is_not_a_token(client, project):
    client.force_login(make_member(project))
    assert client.get("/api/v1/suites").status_code == 401


def test_it_ends_with_the_token(api, project):
    assert api(expires=timezone.now() - timedelta(seconds=1)).get("/suites").status_code == 401
    known = api()
    ApiToken.objects.update(revoked=timezone.now())
    assert known.get("/suites").status_code == 401


def test_it_ends_with_the_membership(api, project):
    known = api()
    Membership.objects.all().delete()
    assert known.get("/suites").status_code == 401


@pytest.mark.parametrize("owner", ["viewer", "runner", "author"])
def test_a_token_never_does_more_than_its_owner(api, project, owner):
    found = api("admin", owner=make_member(project, owner)).get("/projects").json()["items"]
    assert found[0]["role"] == owner


def test_a_member_makes_sees_and_withdraws_a_token(api, project):
    member = api("runner")
    made = member.post("/tokens", {"name": "ci", "role": "viewer"})
    assert made.status_code == 201
    assert made.json()["secret"].startswith("evh_")
    assert {token["name"] for token in member.get("/tokens").json()["items"]} == {"ci", "test"}
    assert member.delete(f"/tokens/{made.json()['id']}").status_code == 204
    assert ApiToken.objects.get(name="ci").revoked is not None
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert actions == {"token.create", "token.revoke"}


def test_a_secret_is_shown_once(api, project):
    made = api().post("/tokens", {"name": "ci"}).json()
    listed = api().get("/tokens").json()
    assert made["secret"] not in str(listed)


@pytest.mark.parametrize("role", ["viewer", "runner", "author"])
def test_a_token_cannot_make_a_greater_one(api, project, role):
    response = api(role, owner=make_member(project, "admin")).post("/tokens", {"name": "x", "role": "admin"})
    assert response.status_code == 403
    assert f"Your role here is {role}" in response.json()["detail"]


@pytest.mark.parametrize("role", ["viewer", "runner", "author"])
def test_a_token_cannot_revoke_a_greater_one(api, project, role):
    admin = make_member(project, "admin")
    above, _ = ApiToken.issue(project, admin, name="deploy", role="admin")
    equal, _ = ApiToken.issue(project, admin, name="ci", role=role)
    leaked = api(role, owner=admin)
    refused = leaked.delete(f"/tokens/{above.pk}")
    assert refused.status_code == 403
    assert (
        f"This token's role is {role}, so it can't revoke a token that is admin." in refused.json()["detail"]
    )
    assert leaked.delete(f"/tokens/{equal.pk}").status_code == 204
    above.refresh_from_db()
    assert above.revoked is None


def test_a_token_cannot_outlive_the_one_that_made_it(api, project):
    end = timezone.now() + timedelta(days=1)
    made = api(expires=end).post("/tokens", {"name": "x"})
    assert ApiToken.objects.get(pk=made.json()["id"]).expires == end


def test_a_token_has_to_end_in_the_future(api, project):
    response = api().post("/tokens", {"name": "x", "expires": "2020-01-01T00:00:00Z"})
    assert response.status_code == 403
    assert "in the past" in response.json()["detail"]


def test_others_tokens_are_for_admins(api, project):
    other = ApiToken.issue(project, make_member(project), name="other", role="viewer")[0]
    assert "other" not in {token["name"] for token in api("author").get("/tokens").json()["items"]}
    assert api("author").delete(f"/tokens/{other.pk}").status_code == 404
    assert "other" in {token["name"] for token in api().get("/tokens").json()["items"]}
    assert api().delete(f"/tokens/{other.pk}").status_code == 204
