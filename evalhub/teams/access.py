"""The access of a person or token to a project, and the door of every page below `/p/{project}/`.

Strangers see nothing, members what their role allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django_htmx.middleware import HtmxDetails

from evalhub.lib.busy import asking_project
from evalhub.teams.models import ApiToken, Membership, Project
from evalhub.teams.roles import Role, allows, find_lower_role


class Users(ModelBackend):
    """Django's users with passwords."""

    def get_user(self, user_id: int) -> User | None:
        """Return the person with this key who may sign in, else None; with their memberships, which pages ask for."""
        user = find_member(user_id) or get_user_model().objects.filter(pk=user_id).first()
        return user if user and self.user_can_authenticate(user) else None


Given = ParamSpec("Given")


class ProjectRequest(HttpRequest):
    """A request of a member of the project it is about."""

    user: User  # `SignInRequired` lets nobody else in
    access: Access
    projects: list[Project]
    """The member's projects, for the menu."""
    htmx: HtmxDetails


ProjectView = Callable[Concatenate[ProjectRequest, Given], HttpResponseBase]


def projects_of(user: User | AnonymousUser) -> list[Project]:
    """Return the projects that a person is a member of, by name. One query."""
    return [each.project for each in memberships_of(user)]


def enter(request: HttpRequest, slug: str, action: str) -> ProjectRequest:
    """Return the request with its access. Raises `Http404` for strangers and `PermissionDenied` for too low a role."""
    member = cast(ProjectRequest, request)
    mine = memberships_of(member.user)
    access = access_among(mine, member.user, slug)
    if access is None:
        raise Http404
    if not access.may(action):
        raise PermissionDenied(f"Your role here, {access.role}, can't {action}. Ask a project admin.")
    member.access = access
    asking_project.set(access.project.pk)
    member.projects = [each.project for each in mine]
    return member


def project_page(
    action: str = "read", *, to_post: str = ""
) -> Callable[[ProjectView[Given]], Callable[..., HttpResponseBase]]:
    """Let only members in who may do `action`, and `to_post` where something is sent; the slug is taken off."""

    def decorate(view: ProjectView[Given]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def opened(
            request: HttpRequest, slug: str, *args: Given.args, **kwargs: Given.kwargs
        ) -> HttpResponseBase:
            asked = to_post if to_post and request.method == "POST" else action
            return view(enter(request, slug, asked), *args, **kwargs)

        return opened

    return decorate


DEFAULT_PROJECT = "default"
_READ = "memberships_read"


@dataclass(frozen=True)
class Access:
    """One person or token in one project."""

    project: Project
    user: User
    role: str

    def may(self, action: str) -> bool:
        """Return whether the action is allowed; `roles.ACTIONS` lists the actions."""
        return allows(self.role, action)


def of_user(user: User, slug: str) -> Access | None:
    """Return a person's access to a project, or None when there is no such project for them."""
    return access_among(memberships_of(user), user, slug)


def access_among(memberships: Iterable[Membership], user: User, slug: str) -> Access | None:
    """Return a person's access to a project among their memberships, or None."""
    membership = next((each for each in memberships if each.project.slug == slug), None)
    return Access(membership.project, user, membership.role) if membership else None


def memberships_of(user: User | AnonymousUser) -> list[Membership]:
    """Return a person's memberships with their projects, by the projects' names.

    One query, or none where `find_member` has read them with the person. Who is not signed in has none.
    """
    if user.pk is None:
        return []
    read: list[Membership] | None = getattr(user, _READ, None)
    return list(_memberships(user.pk)) if read is None else read


def may_create_projects(user: User | AnonymousUser) -> bool:
    """Return whether a person is an admin of some project, or a superuser."""
    return user.is_superuser or any(each.role == Role.ADMIN for each in memberships_of(user))


def find_member(pk: int) -> User | None:
    """Return the person with this key, with their memberships; None where they are a member of nothing. One query."""
    memberships = list(_memberships(pk))
    if not memberships:
        return None
    user = memberships[0].user
    setattr(user, _READ, memberships)
    return user


def _memberships(user: int) -> QuerySet[Membership]:
    return (
        Membership.objects.select_related("project", "user").filter(user=user).order_by("project__name", "pk")
    )


def of_token(token: ApiToken) -> Access | None:
    """Return a token's access to its project: never more than its owner's, None when the owner has left."""
    role = token.owner_role if hasattr(token, "owner_role") else _owner_role(token)
    return Access(token.project, token.user, find_lower_role(token.role, role)) if role else None


def _owner_role(token: ApiToken) -> str | None:
    memberships = Membership.objects.filter(user=token.user_id, project=token.project_id)
    return memberships.values_list("role", flat=True).first()


@transaction.atomic
def default_project() -> Project:
    """Return the project that commands use when none is named; made when there is none at all."""
    project, _ = Project.objects.get_or_create(slug=DEFAULT_PROJECT, defaults={"name": "Default"})
    return project


@transaction.atomic
def local_owner() -> User:
    """Return the owner of an embedded evalhub: without a password, admin of the default project."""
    user, is_new = get_user_model().objects.get_or_create(username="owner")
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    Membership.objects.get_or_create(project=default_project(), user=user, defaults={"role": Role.ADMIN})
    return user
