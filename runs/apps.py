from typing import Any

from django.apps import AppConfig
from django.core.management import CommandError
from django.db import connections
from django.db.models.signals import pre_migrate

OLDEST = "0060_looks"
"""The last migration of 0.1.1, which repairs what older releases stored."""


class RunsConfig(AppConfig):
    name = "runs"
    label = "runs"

    def ready(self) -> None:
        """Refuse wrong settings and old databases, and give patterns that RE2 cannot run a process of their own."""
        from evaluators.patterns import set_runner
        from runs.results.files import store_identity  # noqa: F401  # imported for the check that it registers
        from runs.sandbox.pattern_processes import run_pattern
        from runs.workers.worker_checks import refuse_wrong_settings

        refuse_wrong_settings()
        set_runner(run_pattern)
        pre_migrate.connect(refuse_older, sender=self)


def refuse_older(using: str, **_: Any) -> None:
    """Refuse a database of a release before 0.1.1, as a receiver of `pre_migrate`. Raises `CommandError`."""
    # Needs the registry of apps, which isn't ready when this module is imported.
    from django.db.migrations.recorder import MigrationRecorder

    applied = {
        name for app, name in MigrationRecorder(connections[using]).applied_migrations() if app == "runs"
    }
    if applied and OLDEST not in applied:
        raise CommandError(
            "This database was written before evalhub 0.1.1. Upgrade it with 0.1.1 first, which repairs what older "
            "releases stored.",
            returncode=2,
        )
