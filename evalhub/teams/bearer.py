"""Who asks over REST: a token, for its own project, in no greater role than its owner's."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from evalhub.teams.access import Access, of_token
from evalhub.teams.guesses import Guesses
from evalhub.teams.models import ApiToken, digest
from evalhub.web.rest.errors import ApiError, not_found


class ApiRequest(HttpRequest):
    """A request with a valid token for the project it is about."""

    access: Access
    token: ApiToken


_projects = Guesses()
"""By the digests of their tokens."""


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
        if self.ahead and not request.GET and (project := _projects.get(key)):
            self.ahead(project)
        found = ApiToken.find(token, now=timezone.now())
        access = of_token(found) if found else None
        if access is None:
            return None
        _projects.remember(key, access.project.pk)
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
