"""Error pages. They don't query the database, because it may be unavailable."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from evalhub.lib.busy import TryLater
from evalhub.lib.disk_errors import is_disk_full

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
