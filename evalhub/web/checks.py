"""System checks of the settings: run by `manage.py check`, and by `up` before it serves anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured

TAG = "evalhub"


@register(TAG)
def broker_of_many_machines(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Refuse a database server without a broker that its other machines can reach."""
    if settings.BROKER_URL or settings.DATABASE_URL.split(":")[0] in ("", "sqlite"):
        return []
    return [
        Error(
            "DATABASE_URL names a database server, and EVALHUB_BROKER_URL is not set.",
            hint="Set EVALHUB_BROKER_URL to a Redis or Valkey that web and workers reach, such as redis://host:6379/0.",
            id="evalhub.E001",
        )
    ]


@register(TAG)
def secret_key(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Refuse a server without a secret; only the embedded mode generates one."""
    try:
        known = bool(settings.SECRET_KEY)
    except ImproperlyConfigured:
        known = False
    if known:
        return []
    return [
        Error(
            "EVALHUB_SECRET_KEY is not set.",
            hint="Set it, or EVALHUB_SECRET_KEY_FILE, to 50 random characters, the same for web and workers.",
            id="evalhub.E002",
        )
    ]


@register(TAG)
def hosts(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Warn of a server that answers to every name."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "EVALHUB_HOSTS is '*', so forged Host headers are accepted.",
            hint="Name the hosts under which evalhub is reached, separated by commas.",
            id="evalhub.W001",
        )
    ]


@register(TAG)
def sandbox(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Warn of commands that run uncontained where several people bring them."""
    if settings.EMBEDDED or settings.SANDBOX == "require":
        return []
    return [
        Warning(
            f"EVALHUB_SANDBOX is '{settings.SANDBOX}', so commands of scenarios may run uncontained on the workers.",
            hint="Set EVALHUB_SANDBOX=require and install bubblewrap on the workers.",
            id="evalhub.W002",
        )
    ]


@register(TAG)
def check_egress(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Warn of agents that reach the workers' own network where several people bring them."""
    if settings.EMBEDDED or (settings.EGRESS != "full" and not settings.EGRESS_UNENFORCED):
        return []
    return [
        Warning(
            "Agents may reach the workers' whole network: EVALHUB_EGRESS is 'full' or EVALHUB_EGRESS_UNENFORCED is 1.",
            hint="Set EVALHUB_EGRESS=internet, and open what they need with EVALHUB_EGRESS_ALLOW.",
            id="evalhub.W003",
        )
    ]
