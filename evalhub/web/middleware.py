"""What every answer has: the one policy of what it may load, a person who is signed in, JSON for programs; and what no address may."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from csp.constants import HEADER
from csp.utils import build_policy
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from evalhub.lib.limits import LONGEST_ADDRESS
from evalhub.web.errors import DISK_FULL, error_page

UNUSED = (
    "accelerometer",
    "autoplay",
    "browsing-topics",
    "camera",
    "display-capture",
    "encrypted-media",
    "geolocation",
    "gyroscope",
    "hid",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "publickey-credentials-get",
    "screen-wake-lock",
    "serial",
    "usb",
    "xr-spatial-tracking",
)
"""Features of browsers that no page may use, nor anything in it."""
PERMISSIONS = ", ".join(f"{name}=()" for name in UNUSED)


class BrowserPolicies:
    """Sends the same policies with all pages unless a view overrides them; django-csp's rebuilds them for every response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.policy = build_policy()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault(HEADER, self.policy)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        return response


class SignInRequired(LoginRequiredMiddleware):
    """Django's middleware, except for REST, which answers 401 instead of redirecting."""

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        match = request.resolver_match
        if match is not None and "api" in match.namespaces:
            return None
        return super().process_view(request, view, args, kwargs)

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> Any:
        """Send the whole page to the sign-in, also where htmx asked for a part of it only; and from there back to it."""
        htmx = getattr(request, "htmx", None)
        if not htmx and request.method in ("GET", "HEAD"):
            return super().handle_no_permission(request, view_func)
        # Fragments and addresses that only accept forms aren't pages: return to the page after signing in.
        page = (htmx and htmx.current_url) or request.headers.get("Referer", "")
        here = {request.get_host()}
        local = url_has_allowed_host_and_scheme(page, here, require_https=request.is_secure())
        back = urlsplit(page)._replace(scheme="", netloc="").geturl() if local else "/"
        to = redirect_to_login(back, self.get_login_url(view_func), self.get_redirect_field_name(view_func))
        return HttpResponseClientRedirect(to.url) if htmx else to


API = "/api/"


class ReadableAddress:
    """Refuses addresses that are too long or contain NUL, which PostgreSQL can't store; REST names the field itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if len(request.get_full_path()) > LONGEST_ADDRESS:
            # The page for an address that is too long; `ApiErrors` writes what REST answers.
            if request.path.startswith(API):
                return HttpResponse(status=HTTPStatus.REQUEST_URI_TOO_LONG)
            sentence = (
                f"The address has more than {LONGEST_ADDRESS} characters. Use fewer or shorter filters."
            )
            return error_page(
                HTTPStatus.REQUEST_URI_TOO_LONG, "This URL is too long", sentence, "web/address-too-long"
            )
        written = "%00" in request.META.get("QUERY_STRING", "") or "\x00" in request.path
        if written and not request.path.startswith(API):
            raise BadRequest("The URL contains a NUL byte.")
        return self.get_response(request)


class WrongMethod:
    """Gives a page to addresses that only take forms, which Django answers with nothing at all.

    The address bar shows them after a refused form or a new token, and people reload them from there.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED or request.path.startswith(API):
            return response
        sentence = "This address only accepts form submissions. Open the page with the form."
        page = error_page(response.status_code, "Nothing to show here", sentence, "web/method")
        page["Allow"] = response["Allow"]
        return page


_SENTENCES = {
    400: "Bad request. Check its address and host.",
    404: "Not found. See /api/v1/openapi.json for all operations.",
    405: "Method not allowed. See /api/v1/openapi.json for all operations.",
    413: "The body is too large. Send less at once.",
    414: f"The address is longer than {LONGEST_ADDRESS} characters. Send less in its query.",
    500: "Something went wrong; the log has the details. Nothing is lost; try again or tell an admin.",
    503: "The database did not answer. Nothing is lost; try again in a minute.",
    507: DISK_FULL,
}
_IDS = {
    400: "api/bad-request",
    404: "api/not-found",
    405: "api/method",
    413: "api/too-large",
    414: "api/address-too-long",
    500: "api/failed",
    503: "api/database-away",
    507: "api/disk-full",
}


class ApiErrors:
    """Formats errors outside the REST operations, such as an unknown address, as REST errors."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if response.status_code < 400 or is_json or not request.path.startswith(API):
            return response
        return self._shape_error(response)

    def _shape_error(self, response: HttpResponseBase) -> JsonResponse:
        status = response.status_code
        known = status if status in _IDS else (500 if status >= 500 else 400)
        body = {"detail": _SENTENCES[known], "id": _IDS[known], "problems": []}
        shaped = JsonResponse(body, status=status)
        if "Allow" in response.headers:
            shaped["Allow"] = response.headers["Allow"]
        return shaped
