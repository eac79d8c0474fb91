"""Who asks over REST: a token, for its own project, in no greater role than its owner's."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from evalhub.teams.access import Access, of_token
from evalhub.teams.models import ApiToken, digest
from evalhub.web.rest.errors import ApiError, not_found


class ApiRequest(HttpRequest):
    """A request with a valid token for the project it is about."""

    access: Access
    token: ApiToken


MOST_REMEMBERED = 1000
_projects: dict[str, int] = {}
"""Whose a token was when it was last read, by its digest: a guess, for what is asked together with the token."""


class Bearer(HttpBearer):
    """Lets a request in whose token may do an action of `roles.ACTIONS`.

    `ahead` asks ahead for what an address without parameters reads of a project, which is given as its key.
    """

    def __init__(self, action: str = "read", *, ahead: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self.action = action
        self.ahead = ahead

    def authenticate(self, request: HttpRequest, token: str) -> Access | None:
        """Return the access, or None without a valid token. Raises `ApiError` 403 and 404."""
        key = digest(token)
        if self.ahead and not request.GET and key in _projects:
            self.ahead(_projects[key])
        found = ApiToken.find(token, now=timezone.now())
        access = of_token(found) if found else None
        if access is None:
            return None
        if len(_projects) >= MOST_REMEMBERED:
            _projects.clear()
        _projects[key] = access.project.pk
        slug = request.resolver_match.kwargs.get("project") if request.resolver_match else None
        if slug is not None and slug != access.project.slug:
            raise not_found("project", slug)
        if not access.may(self.action):
            raise ApiError(
                403,
                f"The token's role here is {access.role}, which may not {self.action}. Ask an admin for one that may.",
                id="api/forbidden",
            )
        request.access, request.token = access, found  # type: ignore[attr-defined]  # they make it an ApiRequest
        return access
