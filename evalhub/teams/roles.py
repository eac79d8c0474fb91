"""The four roles and what each may do, in one table."""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    """The roles, lowest first; each includes the rights of those before it."""

    VIEWER = "viewer"
    RUNNER = "runner"
    AUTHOR = "author"
    ADMIN = "admin"


_RANK = {role.value: rank for rank, role in enumerate(Role)}

ACTIONS: dict[str, Role] = {
    "read": Role.VIEWER,
    "run": Role.RUNNER,
    "triage": Role.RUNNER,
    "annotate": Role.RUNNER,
    "review": Role.RUNNER,
    # Scenario files hold commands, so this is the right to execute code on the workers.
    "upload": Role.AUTHOR,
    "read unredacted": Role.AUTHOR,
    # A launch above normal gets lanes before those of everybody else in the project.
    "prioritize": Role.ADMIN,
    "manage": Role.ADMIN,
}
"""The lowest role for each action."""


def allows(role: str | None, action: str) -> bool:
    """Return whether a role may do an action; without a role nothing is allowed."""
    return role is not None and _RANK[role] >= _RANK[ACTIONS[action]]


def find_lower_role(first: str, second: str) -> str:
    """Return the lower of two roles, such as a token's and its owner's."""
    return min(first, second, key=_RANK.__getitem__)
