"""What every request passes: its client's address, the limit of its body, the policy of its answer, error pages."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from csp.constants import HEADER
from csp.utils import build_policy
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from evalhub.lib.busy import TryLater
from evalhub.lib.disk_errors import is_disk_full
from evalhub.lib.limits import LONGEST_ADDRESS

STOP_POLLING = 286
"""The status at which htmx swaps once more and then stops asking (htmx documentation, hx-trigger, Polling)."""


def page_or_fragment(
    request: HttpRequest, page: str, fragment: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render the fragment if htmx requests it, else the page that includes it.

    A page restored from history is asked for by htmx too, and has to be whole.
    """
    htmx = getattr(request, "htmx", None)
    whole = not htmx or htmx.boosted or htmx.history_restore_request
    response = render(request, page if whole else fragment, context, status=status)
    response["Vary"] = "HX-Request"
    return response


def posted_query(request: HttpRequest) -> QueryDict:
    """Return the field `query` decoded, which takes up to 80 times its memory; nothing if no address is as long."""
    text = request.POST.get("query", "")
    return QueryDict(text if len(text) <= LONGEST_ADDRESS else "")


def page(request: HttpRequest) -> dict[str, Any]:
    """Return the version, whether this is an embedded evalhub, and the token of the page's forms.

    Django makes another token for each form of a page; they are as good as one another, so one does.
    """
    token = SimpleLazyObject(lambda: get_token(request))
    return {
        "version": settings.VERSION,
        "embedded": settings.EMBEDDED,
        "csrf_token": token,
        "csrf_input": SimpleLazyObject(
            lambda: format_html('<input type="hidden" name="csrfmiddlewaretoken" value="{}">', token)
        ),
    }


DISK_FULL = "A disk of this server is full or failing, so nothing was saved. Free some space or tell an admin, then try again."
_PROJECT = re.compile(r"/p/(?P<slug>[-\w]+)/")


def error_page(status: int, title: str, sentence: str, identifier: str, *, project: str = "") -> HttpResponse:
    """Return a page with what is wrong and what to do, linked to the project's runs if there is a project."""
    content = {"title": title, "sentence": sentence, "id": identifier, "status": status, "project": project}
    return HttpResponse(render_to_string("web/error.html", content), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = "evalhub can't read this address or form. Go back and try again."
    return error_page(400, "Bad request", sentence, "web/bad-request")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = str(exception) or "Your role in this project doesn't allow this. Ask a project admin."
    return error_page(403, "Not allowed", sentence, "web/forbidden")


def form_expired(request: HttpRequest, reason: str = "") -> HttpResponse:
    sentence = "This form expired or comes from another site. Reload the page and submit it again."
    return error_page(403, "Form expired", sentence, "web/csrf")


def show_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = "This page doesn't exist or you can't see it. If you should have access, ask a project admin."
    below = _PROJECT.match(request.path)
    project = below["slug"] if below else ""
    return error_page(404, "Page not found", sentence, "web/not-found", project=project)


def show_failure(request: HttpRequest, *_: Any) -> HttpResponse:
    """Return the page for the exception being handled: a full disk, an unavailable database, or a fault."""
    import sys

    error = sys.exc_info()[1]
    if is_disk_full(error):
        return error_page(HTTPStatus.INSUFFICIENT_STORAGE, "The disk is full", DISK_FULL, "web/disk-full")
    # Any other of its errors is about what it was asked, and comes again.
    if isinstance(error, OperationalError | InterfaceError):
        sentence = "The database did not answer. Nothing is lost; try again in a minute."
        return error_page(503, "Temporarily unavailable", sentence, "web/database-away")
    if isinstance(error, TryLater):
        return error_page(503, "Temporarily unavailable", str(error), "web/busy")
    sentence = "Something went wrong; the log has the details. Nothing is lost; try again or tell an admin."
    return error_page(500, "Something went wrong", sentence, "web/failed")


UNIX_SOCKET = "unix"
"""In `EVALHUB_TRUSTED_PROXIES`: a proxy that connects over a Unix socket and so has no address."""


def client_address(request: HttpRequest) -> str:
    """Return the address nearest to this server that is not a trusted proxy; empty for a Unix socket.

    `X-Forwarded-For` counts only as far as trusted proxies wrote it, from its right end.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    hops = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).split(",")
    while hops and _is_trusted(address):
        hop = _plain(hops.pop().strip())
        if not hop:
            break
        address = hop
    return _plain(address)


def _plain(text: str) -> str:
    """Return an address as Python writes it, IPv4 in IPv6 as IPv4; empty if it isn't one."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return ""
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def _is_trusted(address: str) -> bool:
    plain = _plain(address)
    if not plain:
        return UNIX_SOCKET in settings.TRUSTED_PROXIES
    parsed = ipaddress.ip_address(plain)
    networks = (each for each in settings.TRUSTED_PROXIES if each != UNIX_SOCKET)
    return any(parsed in ipaddress.ip_network(network) for network in networks)


STRANGER = 64 * 1024
"""Bytes that a page takes from people who aren't signed in: their name, password or invitation."""
FORM = 2 * 1024 * 1024
"""Bytes of a URL-encoded form; decoding takes up to 80 times as much memory. Files and long texts come as multipart."""

_PIECE = 64 * 1024


class BodyLimits:
    """Answers 413 to a body that is too large for a page or an operation.

    Comes before the check of the CSRF token, which reads the form of anybody.
    """

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = self.get_response(request)
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Return the refusal, or None for a body within the limits."""
        size = body_size(request)
        if size <= STRANGER or size <= (most := _most(request)):
            return None
        _discard(request)
        if request.resolver_match and "api" in request.resolver_match.namespaces:
            # `ApiErrors` writes what REST answers.
            return HttpResponse(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        shown = f"{most >> 20} MB" if most >> 20 else f"{most >> 10} kB"
        advice = "Send less at once." if request.user.is_authenticated else "Sign in first."
        sentence = f"This form has more than {shown}. {advice}"
        return error_page(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "This form is too large", sentence, "web/form-too-large"
        )


def body_size(request: HttpRequest) -> int:
    """Return the length of the body in bytes; a body without a length is never read."""
    length = str(request.META.get("CONTENT_LENGTH") or "")
    return int(length) if length.isascii() and length.isdecimal() else 0


def _discard(request: HttpRequest) -> None:
    """Read a body of ordinary size piece by piece, because browsers read no answer while they send."""
    left = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    while left > 0 and (piece := request.read(_PIECE)):
        left -= len(piece)


def _most(request: HttpRequest) -> int:
    largest: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if request.resolver_match and "api" in request.resolver_match.namespaces:
        # Nothing is read of a request without a valid token.
        return largest
    if not request.user.is_authenticated:
        return STRANGER
    return largest if request.content_type == "multipart/form-data" else FORM


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
