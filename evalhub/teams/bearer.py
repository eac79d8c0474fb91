"""Authenticate REST requests: a token acts in its own project, at most in its owner's role."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from evalhub.lib.busy import asking_project
from evalhub.teams.access import Access, of_token
from evalhub.teams.models import ApiToken
from evalhub.web.middleware import STRANGER, body_size
from evalhub.web.rest.errors import ApiError, not_found


class ApiRequest(HttpRequest):
    """A request with a valid token for the project it is about."""

    access: Access
    token: ApiToken


class Bearer(HttpBearer):
    """Lets a request in whose token may do an action of `roles.ACTIONS`."""

    def __init__(self, action: str = "read") -> None:
        super().__init__()
        self.action = action

    def authenticate(self, request: HttpRequest, token: str) -> Access | None:
        """Return the access, or None without a valid token. Raises `ApiError` 403, 404 and 413."""
        api_token = ApiToken.find(token, now=timezone.now())
        access = of_token(api_token) if api_token else None
        if access is None:
            return None
        slug = request.resolver_match.kwargs.get("project") if request.resolver_match else None
        if slug is not None and slug != access.project.slug:
            raise not_found("project", slug)
        if not access.may(self.action):
            raise ApiError(
                403,
                f"The token's role here, {access.role}, can't {self.action}. Ask an admin for one that can.",
                id="api/forbidden",
            )
        if self.action == "read" and body_size(request) > STRANGER:
            sentence = f"The body is larger than {STRANGER >> 10} kB. Send less."
            raise ApiError(413, sentence, id="api/too-large")
        request.access, request.token = access, api_token  # type: ignore[attr-defined]  # they make it an ApiRequest
        asking_project.set(access.project.pk)
        return access
