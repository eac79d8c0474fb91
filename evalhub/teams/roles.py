"""The four roles and what each may do, in one table."""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    """From the least to the greatest: each may do what those before it may."""

    VIEWER = "viewer"
    RUNNER = "runner"
    AUTHOR = "author"
    ADMIN = "admin"


_RANK = {role.value: rank for rank, role in enumerate(Role)}

ACTIONS: dict[str, Role] = {
    "read": Role.VIEWER,
    "run": Role.RUNNER,
    "triage": Role.RUNNER,
    "review": Role.RUNNER,
    # Scenario files hold commands, so this is the right to execute code on the workers.
    "upload": Role.AUTHOR,
    "grade with commands": Role.AUTHOR,
    "read unredacted": Role.AUTHOR,
    "manage": Role.ADMIN,
}
"""The least role for each kind of action."""


def allows(role: str | None, action: str) -> bool:
    """Tell whether a role may do something; nobody without a role may do anything."""
    return role is not None and _RANK[role] >= _RANK[ACTIONS[action]]


def lesser(first: str, second: str) -> str:
    """Return the role that may do less, such as a token's or its owner's."""
    return min(first, second, key=_RANK.__getitem__)
