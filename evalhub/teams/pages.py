"""The door of every page below `/p/{project}/`: strangers see nothing, members what their role allows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django_htmx.middleware import HtmxDetails

from evalhub.lib.busy import asking_project
from evalhub.teams.access import Access, access_among, memberships_of
from evalhub.teams.models import Project

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
