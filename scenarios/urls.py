"""Addresses below a project."""

from __future__ import annotations

from django.urls import path

from scenarios import views

urlpatterns = [path("upload/", views.suite_upload, name="suite-upload")]
