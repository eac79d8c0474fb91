"""Check that web and workers share one file store, by a random id written into each store once."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DEFAULT_DB_ALIAS, Error
from django.utils import timezone

from evalhub.lib.limits import LONGEST_NAME
from runs.db.disk import storage_guard
from runs.models import Worker
from runs.results.files.artifacts import (
    LocalStore,
    open_file_store,
    refusal_code,
    store_away,
    store_error_reason,
    store_errors,
)

NAME = "store-id"
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict")
"""S3's errors when another process wrote the object first."""


def store_id() -> str:
    """Return the id of this process's store; the first process writes it. Raises one of `store_errors()`."""
    with suppress(FileNotFoundError):
        return _read()
    _create(secrets.token_hex(8).encode())
    # Read again, because another process may have been first.
    return _read()


def store_id_if_readable() -> str:
    """Return the id of this process's store; empty while the store can't be read or written."""
    try:
        return store_id()
    except store_errors():
        return ""


def watched_store_id() -> str:
    """Return `store_id_if_readable()`; while the bucket can't be reached, this process starts no trials."""
    try:
        return store_id()
    except store_errors() as error:
        # A bucket that refuses the id may still take files.
        if not isinstance(open_file_store(), LocalStore) and not refusal_code(error):
            storage_guard.note(store_away(error))
        return ""


def store_problems() -> list[str]:
    """Return a sentence for each online worker that uses another store. One query."""
    reported = dict(Worker.heard(now=timezone.now()).exclude(store="").values_list("name", "store"))
    if not reported:
        return []
    try:
        identity = store_id()
    except store_errors() as error:
        return [f"The file store cannot be read: {store_error_reason(error)}. Check EVALHUB_STORE."]
    return [
        f"Worker {name} stores files elsewhere: set EVALHUB_STORE or share the data directory."
        for name, other in reported.items()
        if other != identity
    ]


def store_problems_if_known() -> list[str]:
    """Return `store_problems()`; empty while the database is unavailable or not migrated."""
    try:
        return store_problems()
    except Error:
        return []


def _read() -> str:
    with open_file_store().open(NAME, "rb") as file:
        content: bytes = file.read(LONGEST_NAME)
    return content.decode("ascii", "replace").strip()


def _create(content: bytes) -> None:
    """Write the id unless there is one already."""
    store = open_file_store()
    if isinstance(store, LocalStore):
        store.create(NAME, content)
    else:
        _create_object(store, content)


def _create_object(store: Any, content: bytes) -> None:
    target = store.bucket.Object(f"{store.location}/{NAME}".lstrip("/"))
    try:
        target.put(Body=content, IfNoneMatch="*")
    except store.connection.meta.client.exceptions.ClientError as error:
        code = error.response.get("Error", {}).get("Code")
        if code == "NotImplemented":
            # Some stores can't write conditionally: the last writer wins, and every report reads again.
            target.put(Body=content)
        elif code not in _TAKEN:
            raise


@register(Tags.database)
def one_file_store(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn about workers with another file store."""
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
