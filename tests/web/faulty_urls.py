"""Addresses whose views fail, beside the product's own."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import path

from evalhub.urls import handler500 as handler500
from evalhub.urls import urlpatterns as product


@login_not_required
def fault(request: HttpRequest) -> HttpResponse:
    raise ValueError("oops")


@login_not_required
def database_away(request: HttpRequest) -> HttpResponse:
    raise OperationalError("gone")


@login_not_required
def connection_lost(request: HttpRequest) -> HttpResponse:
    raise InterfaceError("gone")


@login_not_required
def wrong_value(request: HttpRequest) -> HttpResponse:
    raise DataError("oops")


urlpatterns = [
    *product,
    path("fault/", fault),
    path("away/", database_away),
    path("lost/", connection_lost),
    path("wrong-value/", wrong_value),
]
