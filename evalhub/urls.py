"""Addresses; docs/api.md lists the stable ones."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from evalhub import health, metrics
from evalhub.teams.urls import project_urls as team_urls
from evalhub.web import patterns
from runs.urls import project_urls

# Most requested first: Django tries patterns in order.
urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include("evalhub.api_urls")),
    path("p/<slug:slug>/", include([*project_urls, *team_urls])),
    path("", include("evalhub.teams.urls")),
    path("", include("runs.urls")),
    path("patterns/", patterns.patterns, name="patterns"),
    path("healthz", health.healthz, name="healthz"),
    path("metrics", metrics.show_metrics, name="metrics"),
]

handler400 = "evalhub.web.middleware.bad_request"
handler403 = "evalhub.web.middleware.forbidden"
handler404 = "evalhub.web.middleware.show_not_found"
handler500 = "evalhub.web.middleware.show_failure"
