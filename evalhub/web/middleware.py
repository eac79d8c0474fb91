"""Every page needs somebody who is signed in, unless its view says otherwise."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponseBase
from django_htmx.http import HttpResponseClientRedirect


class SignInRequired(LoginRequiredMiddleware):
    """Django's middleware, but for REST, which answers 401 by itself instead of a redirect."""

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        match = request.resolver_match
        if match is not None and "api" in match.namespaces:
            return None
        return super().process_view(request, view, args, kwargs)

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> Any:
        """Send the whole page to the sign-in, also where htmx asked for a part of it only."""
        response = super().handle_no_permission(request, view_func)
        return HttpResponseClientRedirect(response.url) if getattr(request, "htmx", None) else response
