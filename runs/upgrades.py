"""Refuse to migrate a database whose data no migration repairs."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

OLDEST = "0060_looks"
"""The last migration of 0.1.1, which repairs what older releases stored."""


def refuse_older(using: str, **_: Any) -> None:
    """Refuse a database of a release before 0.1.1, as a receiver of `pre_migrate`. Raises `CommandError`."""
    applied = {
        name for app, name in MigrationRecorder(connections[using]).applied_migrations() if app == "runs"
    }
    if applied and OLDEST not in applied:
        raise CommandError(
            "This database was written before evalhub 0.1.1. Upgrade it with 0.1.1 first, which repairs what older "
            "releases stored.",
            returncode=2,
        )
