"""Addresses of the REST interface, below `/api/v1/`."""

from __future__ import annotations

from typing import Any

from django.urls import include, path

from evalhub import api_docs
from evalhub.api import api

NOT_OF_PROJECTS = ("projects", "health")


def _patterns() -> list[Any]:
    """Return every operation at its short address, and those of a project below the project, too."""
    own = [each for each in api.urls[0] if str(each.pattern)]
    of_project = [each for each in own if not str(each.pattern).startswith(NOT_OF_PROJECTS)]
    return [
        path("openapi.json", api_docs.openapi_json, name="openapi-json"),
        path("docs", api_docs.docs, name="docs"),
        *own,
        path("projects/<slug:project>/", include((of_project, "project"))),
        path("<path:rest>", api_docs.nothing, name="nothing"),
    ]


urlpatterns = _patterns()
app_name = "api"
