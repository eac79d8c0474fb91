"""Moments as JSON has them: ISO 8601, UTC, with Z."""

from __future__ import annotations

from datetime import datetime


def format_timestamp(at: datetime | None) -> str | None:
    """Return the moment as text, None for none."""
    return at.isoformat().replace("+00:00", "Z") if at else None
