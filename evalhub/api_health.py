"""REST: how evalhub is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from evalhub import health
from evalhub.web.rest.errors import ErrorOut

router = Router(tags=["health"])


class HealthOut(Schema):
    ok: bool
    """Whether the database and the broker answer, the disks have room, and workers reach the file store."""
    version: str | None = None
    """Only for members and tokens of admins."""
    database: str
    broker: str
    disk: str
    """Why trials can't be stored: a full disk, or a file store that workers can't reach."""
    store: str | None = None
    """Which workers store files where pages can't read them; only for members and tokens of admins."""


@router.get("/health", auth=None, response={200: HealthOut, 503: HealthOut, 405: ErrorOut})
def get_health(request: HttpRequest) -> Status[dict[str, Any]]:
    """Whether evalhub works; needs no token, and with one of an admin says which version. 503 without the database."""
    state = health.visible_state(request)
    return Status(200 if state["database"] == "ok" else 503, state)
