from datetime import UTC
from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created


def _read_quickly(connection: Any, **_: Any) -> None:
    if connection.vendor == "sqlite" and connection.timezone is UTC:
        from evalhub.web.sqlite import read_moments_in_utc

        read_moments_in_utc()


class WebConfig(AppConfig):
    name = "evalhub.web"
    label = "web"

    def ready(self) -> None:
        # Imported for what it registers.
        from evalhub.web import checks  # noqa: F401

        connection_created.connect(_read_quickly, dispatch_uid="evalhub.web.read_quickly")
