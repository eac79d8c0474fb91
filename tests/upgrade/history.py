"""Databases of an earlier release: the migrations one after the other, in place of the one that replaces them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

REPLACING = "runs.migrations.0001_squashed_0064"


@contextmanager
def one_by_one() -> Iterator[None]:
    """Let Django see the single migrations of `runs`."""
    migration = import_module(REPLACING).Migration
    replaced, migration.replaces = migration.replaces, []
    try:
        yield
    finally:
        migration.replaces = replaced


def migrate_runs_to(name: str) -> Any:
    """Migrate `runs` to the migration of this name, forwards or backwards, and return the models of that time."""
    with one_by_one():
        return MigrationExecutor(connection).migrate([("runs", name)]).apps
