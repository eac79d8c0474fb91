"""Pages without collected static files."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def plain_static_files(settings: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Serve static files by their own names; conftest files of tests that draw pages import this."""
    # An empty folder, the same for all: making one takes longer than many a test.
    folder = tmp_path_factory.getbasetemp() / "static"
    folder.mkdir(exist_ok=True)
    backend = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": backend}
    settings.STATIC_ROOT = folder
