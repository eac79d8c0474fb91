"""A broker in memory, for no test of targets has a worker."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch, settings):
    """Send wake-ups to a broker in memory."""
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"
