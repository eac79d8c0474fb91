"""Adds, changes and removes members. A project always has an admin.

Models as judges: the recommended ones, small and of providers whose key is set, and which names are models.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
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

RECOMMENDED = {"OPENAI_API_KEY": "openai/gpt-4o-mini", "ANTHROPIC_API_KEY": "anthropic/claude-haiku-4-5"}
"""Models by the variable of their key (llm-tool-test evaluation, Judge Model)."""


def offered_judges(variables: Mapping[str, str]) -> list[str]:
    """Return the recommended models whose key is among the variables."""
    return [model for variable, model in RECOMMENDED.items() if variables.get(variable, "").strip()]


def model_id(name: str) -> str:
    """Return a model's litellm id, provider first; empty if no model has the name.

    A name with a slash is taken to have its provider.
    """
    provider = "" if "/" in name else _providers().get(name, "")
    return name if "/" in name else f"{provider}/{name}" if provider else ""


def judge_problem(name: str, targets: Collection[str]) -> str:
    """Return why a name can't be a judge's, with the nearest one that can; empty if it is a target's or a model's."""
    if not name or name in targets or model_id(name):
        return ""
    near = get_close_matches(name, [*targets, *_providers()], n=1)
    hint = (
        f"Did you mean '{near[0]}'?"
        if near
        else "Name a model with its provider, such as openai/gpt-4o-mini."
    )
    return f"The judge '{name}' is neither a target of this project nor a model that litellm knows. {hint}"


@cache
def _providers() -> dict[str, str]:
    """Return the provider of each chat model that litellm's own map names without one.

    The map is read as a file, because importing litellm takes seconds.
    """
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    models: dict[str, dict[str, Any]] = msgspec.json.decode(
        Path(spec.origin).with_name("model_prices_and_context_window_backup.json").read_bytes()
    )
    return {
        name: _provider(name, str(model["litellm_provider"]), models)
        for name, model in models.items()
        if "/" not in name and model.get("mode") == "chat" and model.get("litellm_provider")
    }


def _provider(name: str, listed: str, models: Collection[str]) -> str:
    """Return what an id begins with; the map lists kinds of a provider's interfaces."""
    if f"gemini/{name}" in models:
        return "gemini"
    return "vertex_ai" if listed.startswith("vertex_ai") else listed.removesuffix("_converse")


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
