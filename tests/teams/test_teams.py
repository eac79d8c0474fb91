"""Roles, tokens, sign-in links and the commands that make them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.access import Users, default_project, local_owner, memberships_of, of_token, of_user
from evalhub.teams.members import add_member, remove_member
from evalhub.teams.models import ApiToken, AuditEvent, Membership, SignInLink
from evalhub.teams.roles import ACTIONS, Role, allows, find_lower_role
from tests.builders import make_member, make_project


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("viewer", {"read"}),
        ("runner", {"read", "run", "triage", "review", "annotate"}),
        ("author", {"read", "run", "triage", "review", "annotate", "upload", "read unredacted"}),
        ("admin", set(ACTIONS)),
        (None, set()),
    ],
    ids=["viewer", "runner", "author", "admin", "nobody"],
)
def test_a_roles_permissions_match_the_table(role, allowed):
    assert {action for action in ACTIONS if allows(role, action)} == allowed


def test_the_lesser_of_two_roles_counts():
    assert find_lower_role("admin", "runner") == find_lower_role("runner", "admin") == "runner"


@pytest.mark.django_db
class TestAccess:
    def test_a_stranger_has_none(self):
        project = make_project()
        assert of_user(make_member(make_project("others")), project.slug) is None

    def test_a_token_never_exceeds_its_owner(self):
        project = make_project()
        owner = make_member(project, "runner")
        token, _ = ApiToken.issue(project, owner, name="ci", role=Role.ADMIN)
        access = of_token(token)
        assert access is not None
        assert access.role == "runner"
        assert not access.may("upload")

    def test_the_token_of_somebody_who_left_opens_nothing(self):
        project = make_project()
        owner = make_member(project, "admin")
        token, _ = ApiToken.issue(project, owner, name="ci", role=Role.VIEWER)
        Membership.objects.filter(user=owner).delete()
        assert of_token(token) is None

    def test_a_person_comes_with_their_memberships_in_one_query(self, django_assert_num_queries):
        user = make_member(make_project("one"))
        Membership.objects.create(project=make_project("another"), user=user, role=Role.ADMIN)
        with django_assert_num_queries(1):
            read = Users().get_user(user.pk)
            mine = [(each.project.slug, each.role) for each in memberships_of(read)]
        assert (read, mine) == (user, [("another", "admin"), ("one", "admin")])

    def test_a_person_who_is_a_member_of_nothing_signs_in(self):
        user = make_member(make_project())
        user.memberships.all().delete()
        assert Users().get_user(user.pk) == user
        assert memberships_of(user) == []

    def test_a_token_comes_with_its_owners_role_in_one_query(self, django_assert_num_queries):
        project = make_project()
        _, secret = ApiToken.issue(project, make_member(project, "runner"), name="ci", role=Role.ADMIN)
        ApiToken.find(secret, now=timezone.now())  # notes its use
        with django_assert_num_queries(1):
            access = of_token(ApiToken.find(secret, now=timezone.now()))
        assert access.role == "runner"

    def test_the_token_found_of_somebody_who_left_opens_nothing(self):
        project = make_project()
        owner = make_member(project, "runner")
        _, secret = ApiToken.issue(project, owner, name="ci", role=Role.ADMIN)
        Membership.objects.filter(user=owner).delete()
        assert of_token(ApiToken.find(secret, now=timezone.now())) is None

    def test_the_token_of_somebody_who_left_stays_without_access_when_they_return(self):
        project = make_project()
        admin = of_user(make_member(project, "admin"), project.slug)
        owner = make_member(project, "runner")
        other = make_project("others")
        Membership.objects.create(project=other, user=owner, role=Role.RUNNER)
        _, secret = ApiToken.issue(project, owner, name="ci", role=Role.RUNNER)
        _, elsewhere = ApiToken.issue(other, owner, name="ci", role=Role.RUNNER)
        remove_member(admin, Membership.objects.get(project=project, user=owner))
        add_member(admin, name=owner.get_username(), role=Role.RUNNER)
        assert ApiToken.find(secret, now=timezone.now()) is None
        assert ApiToken.find(elsewhere, now=timezone.now()) is not None

    def test_the_local_owner_is_made_once_and_has_no_password(self):
        assert local_owner() == local_owner()
        assert not local_owner().has_usable_password()
        access = of_user(local_owner(), default_project().slug)
        assert access is not None
        assert access.role == "admin"


@pytest.mark.django_db
class TestApiToken:
    @pytest.fixture
    def issued(self):
        project = make_project()
        return ApiToken.issue(project, make_member(project), name="ci", role=Role.RUNNER)

    def test_only_a_hash_of_it_is_stored(self, issued):
        token, secret = issued
        assert secret not in str(ApiToken.objects.values())
        assert secret.startswith(token.prefix)

    def test_it_is_found_by_its_secret(self, issued):
        token, secret = issued
        now = timezone.now()
        assert ApiToken.find(secret, now=now) == token
        assert ApiToken.find(secret + "x", now=now) is None
        token.refresh_from_db()
        assert token.last_used == now

    @pytest.mark.parametrize("why", ["revoked", "expired", "inactive"])
    def test_it_is_not_found_any_more(self, issued, why):
        _, secret = issued
        now = timezone.now()
        if why == "inactive":
            get_user_model().objects.update(is_active=False)
        else:
            ApiToken.objects.update(
                **{"revoked" if why == "revoked" else "expires": now - timedelta(seconds=1)}
            )
        assert ApiToken.find(secret, now=now) is None


@pytest.mark.django_db
class TestSignInLink:
    def test_it_works_once(self):
        secret, now = SignInLink.issue(local_owner()), timezone.now()
        assert SignInLink.use(secret, now=now) == local_owner()
        assert SignInLink.use(secret, now=now) is None

    def test_it_is_over_after_15_minutes(self):
        secret = SignInLink.issue(local_owner())
        assert SignInLink.use(secret, now=timezone.now() + timedelta(minutes=15)) is None


@pytest.mark.django_db
def test_the_audit_log_is_in_order_and_survives_its_people():
    project = make_project()
    ada = make_member(project, "admin", "ada")
    audit.append_event(project, ada, "member.role", "bob", role="viewer")
    audit.append_event(project, ada, "token.create", "ci")
    ada.delete()
    events = AuditEvent.objects.filter(project=project)
    assert [(event.action, event.user) for event in events] == [("token.create", None), ("member.role", None)]
