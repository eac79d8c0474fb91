"""Refuse bodies that are larger than their sender needs, before they are read."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from evalhub.web.errors import error_page

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
