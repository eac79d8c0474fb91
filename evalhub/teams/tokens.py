"""Create and revoke tokens, for pages, REST and the command line."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.access import Access
from evalhub.teams.models import ApiToken
from evalhub.teams.roles import Role, find_lower_role


class TokenRefused(Exception):
    """A token that would exceed its owner's rights, or another's that is above; the message says what to do."""


def tokens_of(access: Access) -> QuerySet[ApiToken]:
    """Return the tokens that a user may see and revoke: their own; for an admin, all of the project."""
    tokens = ApiToken.objects.filter(project=access.project).select_related("user")
    return tokens if access.may("manage") else tokens.filter(user=access.user)


@transaction.atomic
def issue_token(
    access: Access, *, name: str, role: str, expires: datetime | None = None, latest: datetime | None = None
) -> tuple[ApiToken, str]:
    """Return a new token for the user, and its secret.

    `latest` is when the token ends that asks for it; a new one ends no later. Raises `TokenRefused`.
    """
    if find_lower_role(role, access.role) != role:
        raise TokenRefused(
            f"Your role here is {access.role}, so a token can't be {role}. Choose a lower role."
        )
    if expires is not None and expires <= timezone.now():
        raise TokenRefused("The expiry date is in the past. Choose a later one.")
    ends = min(filter(None, (expires, latest)), default=None)
    token, secret = ApiToken.issue(access.project, access.user, name=name, role=role, expires=ends)
    audit.append_event(access.project, access.user, "token.create", token, role=role)
    return token, secret


@transaction.atomic
def revoke_token(access: Access, token_id: int, *, within: str = Role.ADMIN.value) -> bool:
    """Revoke a token at once; return False if the user can't revoke such a token.

    `within` is the role of the token that asks for it. Raises `TokenRefused` for a token above it.
    """
    token = tokens_of(access).filter(pk=token_id).first()
    if token is None:
        return False
    if find_lower_role(token.role, within) != token.role:
        raise TokenRefused(
            f"This token's role is {within}, so it can't revoke a token that is {token.role}. "
            "Use a token of that role, or the page of your tokens."
        )
    if ApiToken.objects.filter(pk=token.pk, revoked=None).update(revoked=timezone.now()):
        audit.append_event(access.project, access.user, "token.revoke", token)
    return True
