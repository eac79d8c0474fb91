from datetime import UTC
from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created


def _read_moments_quickly(connection: Any, **_: Any) -> None:
    # The driver of a database that is not used is not imported.
    if connection.vendor == "postgresql" and connection.timezone is UTC:
        from evalhub.web.postgres import MomentLoader

        connection.connection.adapters.register_loader("timestamptz", MomentLoader)


class WebConfig(AppConfig):
    name = "evalhub.web"
    label = "web"

    def ready(self) -> None:
        # Imported for what it registers.
        from evalhub.web import checks  # noqa: F401

        connection_created.connect(_read_moments_quickly, dispatch_uid="evalhub.web.moments")
