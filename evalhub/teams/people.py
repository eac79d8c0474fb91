"""Finds the accounts named in commands."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from evalhub.teams.access import local_owner
from evalhub.web.commands import Refused


def person(name: str | None, what: str) -> User:
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
