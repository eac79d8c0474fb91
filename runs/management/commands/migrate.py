"""`migrate`: Django's, which first refuses a database of an older release in one sentence."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

OLDEST = "0073_one_alert_a_kind"
"""The last migration of `runs` in 0.1.2."""


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate. Raises `CommandError` for a database that was written before 0.1.2."""
        applied = MigrationRecorder(connections[options["database"]]).applied_migrations()
        names = {name for app, name in applied if app == "runs"}
        if names and OLDEST not in names:
            raise CommandError(
                "This database was written before evalhub 0.1.2. Upgrade it with 0.1.2 first, which repairs what older "
                "releases stored.",
                returncode=2,
            )
        super().handle(*args, **options)
