"""What every page needs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def page(request: HttpRequest) -> dict[str, Any]:
    """Return the version and whether this is an embedded evalhub."""
    return {"version": settings.VERSION, "embedded": settings.EMBEDDED}
