"""What the REST interface says of itself: its OpenAPI document, and that as a page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from evalhub.api import openapi_document


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
def nothing(request: HttpRequest, rest: str) -> HttpResponse:
    """Answer for an address that is none, in the shape of every refusal (`ApiErrors`)."""
    raise Http404
