"""Addresses whose views fail, beside the product's own."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import OperationalError
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


urlpatterns = [*product, path("fault/", fault), path("away/", database_away)]
