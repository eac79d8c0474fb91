"""Pages for what goes wrong. They ask the database nothing, as it may be what is away."""

from __future__ import annotations

from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


def error_page(status: int, title: str, sentence: str, identifier: str) -> HttpResponse:
    """Return a page that says what is wrong and what to do."""
    content = {"title": title, "sentence": sentence, "id": identifier, "status": status}
    return HttpResponse(render_to_string("web/error.html", content), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = "The address or the form is not one that this server understands. Go back and try again."
    return error_page(400, "This request cannot be read", sentence, "web/bad-request")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = str(exception) or "Your role in this project does not allow this. Ask an admin of the project."
    return error_page(403, "You may not do this", sentence, "web/forbidden")


def form_expired(request: HttpRequest, reason: str = "") -> HttpResponse:
    sentence = "The form is too old or comes from another site. Open the page again and send it once more."
    return error_page(403, "This form was not accepted", sentence, "web/csrf")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = "Nothing is kept at this address, or you are not a member of its project. Ask an admin of the project."
    return error_page(404, "There is no such page for you", sentence, "web/not-found")


def failed(request: HttpRequest, *_: Any) -> HttpResponse:
    """Tell a database that is away from a fault of evalhub, by the exception that is being handled."""
    import sys

    # Any other of its errors is about what it was asked, and comes again.
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        sentence = "The database did not answer. Nothing is lost; try again in a minute."
        return error_page(503, "This page could not be loaded", sentence, "web/database-away")
    sentence = "evalhub made a mistake, and its log says which. Nothing is lost; try again or tell an admin."
    return error_page(500, "This page could not be made", sentence, "web/failed")
