"""Where a page is found from outside."""

from __future__ import annotations

from django.conf import settings


def address_of(path: str) -> str | None:
    """Return a page's whole address at the first of `EVALHUB_HOSTS`; None where no host is named."""
    host = next((each.removeprefix(".") for each in settings.EVALHUB_HOSTS if each != "*"), None)
    return f"https://{host}{path}" if host else None
