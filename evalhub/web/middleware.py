"""Every page needs somebody who is signed in, unless its view says otherwise."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse


class SignInRequired(LoginRequiredMiddleware):
    """Django's middleware, but for REST, which answers 401 by itself instead of a redirect."""

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is not None and "api" in match.namespaces:
            return None
        return super().process_view(request, view, args, kwargs)
