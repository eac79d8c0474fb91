"""Pages without collected static files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def plain_static_files(settings: Any, tmp_path: Path) -> None:
    """Serve static files by their own names; conftest files of tests that draw pages import this."""
    backend = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": backend}
    settings.STATIC_ROOT = tmp_path
