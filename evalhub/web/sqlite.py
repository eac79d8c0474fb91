"""How moments are read from SQLite: in one step, where Django makes a moment without its zone and then another."""

from __future__ import annotations

from datetime import UTC, datetime
from sqlite3 import register_converter

from django.utils.dateparse import parse_datetime


def read_moments_in_utc() -> None:
    """Let columns of moments come as moments in UTC, which Django takes as they are; for all connections."""
    register_converter("datetime", _moment)


def _moment(value: bytes) -> datetime | None:
    text = value.decode()
    try:
        return datetime.fromisoformat(f"{text}+00:00")
    except ValueError:
        # As another program may have written it.
        at = parse_datetime(text)
        return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at
