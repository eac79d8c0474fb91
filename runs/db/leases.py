"""Leases: the right to work on a row until a moment of the database's clock, under a token that later writes name."""

from __future__ import annotations

import uuid

from django.conf import settings

from runs.db.clock import DatabaseNow


def new_token() -> str:
    """Return a fencing token."""
    return uuid.uuid4().hex


def lease_end() -> object:
    """Return the expression for a lease that begins now."""
    return DatabaseNow() + float(settings.LEASE_SECONDS)
