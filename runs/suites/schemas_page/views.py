"""The JSON Schemas of files that evalhub reads, as an index and as documents. They hold no data of anybody."""

from __future__ import annotations

from hashlib import sha256

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition, require_safe

FRESH_SECONDS = 3600


@login_not_required
@require_safe
def schema_list(request: HttpRequest) -> HttpResponse:
    """List the schemas, with how an editor finds them."""
    # Imported here and below because the models of all formats are many, and few requests ask for them.
    from runs.suites.file_schemas import FILE_SCHEMAS

    context = {
        "schemas": list(FILE_SCHEMAS.values()),
        "address": settings.PUBLIC_URL.rstrip("/") + reverse("schema-list"),
    }
    return render(request, "suites/schemas/schemas.html", context)


def _content(name: str) -> bytes:
    from runs.suites.file_schemas import schema_text

    try:
        return schema_text(name).encode()
    except KeyError as error:
        raise Http404 from error


def _digest(request: HttpRequest, name: str) -> str:
    return f'"{sha256(_content(name)).hexdigest()[:32]}"'


@login_not_required
@require_safe
@cache_control(public=True, max_age=FRESH_SECONDS)
@condition(etag_func=_digest)
def schema(request: HttpRequest, name: str) -> HttpResponse:
    """Send a schema; an editor that has it already gets nothing again."""
    return HttpResponse(_content(name), content_type="application/schema+json")
