"""One view, two answers: the page for a browser, its fragment for htmx."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

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
