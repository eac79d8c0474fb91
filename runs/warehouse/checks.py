"""Check for workers with another file store, in `manage.py check --database default` and `migrate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DEFAULT_DB_ALIAS

from runs.warehouse.store_identity import store_problems_if_known


@register(Tags.database)
def one_file_store(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn of workers whose files the pages can't read."""
    if DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    return [
        Warning(
            problem,
            hint="Web and workers need one file store; see 'Files of trials' in docs/operations.md.",
            id="evalhub.W004",
        )
        for problem in store_problems_if_known()
    ]
