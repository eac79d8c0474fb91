"""Adds, changes and removes members. A project always has an admin."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.access import Access, local_owner
from evalhub.teams.models import ApiToken, Membership, Project
from evalhub.teams.roles import Role
from evalhub.web.commands import Refused


def find_person(name: str | None, what: str) -> User:
    """Return the account with this name, or the local owner's without a name. Raises `Refused`; `what` names the purpose."""
    if name is None and settings.EMBEDDED:
        return local_owner()
    if name is None:
        raise Refused(f"Say with --user {what}: on a server there is no local owner.")
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise Refused(
            f"There is no user '{name}'. Give another --user, or make one with 'manage.py create_user'."
        )
    if not user.is_active:
        raise Refused(f"The account of {name} is switched off. Give another --user.")
    return user


class MemberRefused(Exception):
    """A refused change of members; the message says what to do."""


@transaction.atomic
def add_member(access: Access, *, name: str, role: str) -> Membership:
    """Add a member to the project. Raises `MemberRefused` if the account doesn't exist or is a member already."""
    user = get_user_model().objects.filter(username=name, is_active=True).first()
    if user is None:
        raise MemberRefused(
            f"There is no account '{name}'. An operator can create it with manage.py create_user."
        )
    membership, is_new = Membership.objects.get_or_create(
        project=access.project, user=user, defaults={"role": role}
    )
    if not is_new:
        raise MemberRefused(f"{name} is already a member ({membership.role}). Change the role in the list.")
    audit.append_event(access.project, access.user, "member.add", name, role=role)
    return membership


@transaction.atomic
def change_role(access: Access, membership: Membership, role: str) -> None:
    """Give a member another role. Raises `MemberRefused` where the project would be without an admin."""
    if role == membership.role:
        return
    _keep_an_admin(access.project, membership)
    before, membership.role = membership.role, role
    membership.save(update_fields=["role"])
    audit.append_event(
        access.project, access.user, "member.role", membership.user.get_username(), before=before, role=role
    )


@transaction.atomic
def remove_member(access: Access, membership: Membership) -> None:
    """Let a member go and revoke their tokens. Raises `MemberRefused` for the last admin."""
    _keep_an_admin(access.project, membership)
    # Otherwise they would work again if this person became a member once more.
    tokens = ApiToken.objects.filter(project=access.project, user=membership.user, revoked=None)
    tokens.update(revoked=timezone.now())
    audit.append_event(
        access.project, access.user, "member.remove", membership.user.get_username(), role=membership.role
    )
    membership.delete()


def _keep_an_admin(project: Project, membership: Membership) -> None:
    # Locked, so that of two admins not each removes the other.
    admins = Membership.objects.select_for_update(of=("self",)).filter(project=project, role=Role.ADMIN)
    others = [each.user for each in admins.select_related("user") if each.pk != membership.pk]
    # One who signs in with a password, or with the link of an embedded evalhub.
    remains = any(each.is_active and (settings.EMBEDDED or each.has_usable_password()) for each in others)
    if membership.role == Role.ADMIN and not remains:
        name = membership.user.get_username()
        raise MemberRefused(f"{name} is the only admin of the project. Make someone else admin first.")
