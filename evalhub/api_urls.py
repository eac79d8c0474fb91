"""Addresses of the REST interface, below `/api/v1/`, and its OpenAPI document, also as a page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from evalhub.api import api, openapi_document


@login_not_required
@require_safe
def openapi_json(request: HttpRequest) -> JsonResponse:
    """Give the OpenAPI document, which holds no data of anybody."""
    return JsonResponse(openapi_document())


@login_not_required
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Show every operation on one page, without a script."""
    operations = [
        {"method": method.upper(), "path": path, **operation}
        for path, by_method in openapi_document()["paths"].items()
        for method, operation in by_method.items()
    ]
    return render(request, "web/api_docs.html", {"operations": operations})


@csrf_exempt
@login_not_required
def answer_nothing(request: HttpRequest, rest: str) -> HttpResponse:
    """Answer for an address that doesn't exist, in the shape of every refusal (`ApiErrors`)."""
    raise Http404


def _patterns() -> list[Any]:
    """Return every operation at its short address, and those of a project below the project, too."""
    operations = [each for each in api.urls[0] if str(each.pattern)]
    of_project = [each for each in operations if not str(each.pattern).startswith(("projects", "health"))]
    return [
        path("openapi.json", openapi_json, name="openapi-json"),
        path("docs", docs, name="docs"),
        *operations,
        path("projects/<slug:project>/", include((of_project, "project"))),
        path("<path:rest>", answer_nothing, name="nothing"),
    ]


urlpatterns = _patterns()
app_name = "api"
