"""The database's driver itself, for the statements of every trial and of every page.

Django's cursors look at every statement in Python before and after; for these they take as long as the database.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    from evalhub.web.postgresql.base import DatabaseWrapper
    from evalhub.web.postgresql.statements import Statements

PLACES = {"sqlite": "?", "postgresql": "%s"}
"""What stands for a parameter in a statement of the driver, by vendor."""


def connected() -> BaseDatabaseWrapper:
    """Return this thread's connection, opened as Django opens it. Raises `OperationalError`."""
    database = connections[DEFAULT_DB_ALIAS]
    database.close_if_health_check_failed()
    database.ensure_connection()
    return database


def execute(database: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any]) -> Any:
    """Carry out a statement and return the driver's cursor. Raises Django's exceptions, as a cursor of Django does.

    It may change what was read ahead, so that is given up.
    """
    if kept := _statements(database):
        kept.forget_rows()
    with database.wrap_database_errors:
        return database.connection.execute(sql, parameters)


def execute_many(database: BaseDatabaseWrapper, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Carry out a statement for each row."""
    if len(rows) == 1:
        execute(database, sql, rows[0])
        return
    with database.wrap_database_errors:
        database.connection.cursor().executemany(sql, rows)


def written_for(
    database: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any], given: Collection[int]
) -> tuple[str, list[Any]]:
    """Return a statement of Django's compiler as `select` takes it, and the parameters that are left to it.

    Those at the places `given` change from call to call. PostgreSQL plans for any values of parameters, so the others
    are written out there: it knows then how many rows are in a state that is always asked for.
    """
    if database.vendor != "postgresql":
        return sql % (("?",) * len(parameters)), [*parameters]
    from psycopg.sql import Literal

    numbers = count(1)
    places = [
        f"${next(numbers)}" if at in given else Literal(value).as_string(database.connection)
        for at, value in enumerate(parameters)
    ]
    return sql % tuple(places), [value for at, value in enumerate(parameters) if at in given]


def select(database: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement that is carried out again and again, as they come from the driver.

    PostgreSQL keeps how it carries the statement out, where `prepare_threshold` allows it, and sends what it has in
    its own form: bytes in text are twice as long and read one by one. Raises Django's exceptions.
    """
    with database.wrap_database_errors:
        if kept := _statements(database):
            return kept.rows(sql, parameters)
        rows: list[tuple[Any, ...]] = database.connection.execute(sql, parameters).fetchall()
        return rows


def ask_ahead(database: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any]) -> None:
    """Have the rows of a statement, that `select` is about to be asked for, come with those of the next one.

    PostgreSQL's answers are waited for, so several in one trip take little longer than one. SQLite's are not.
    """
    if kept := _statements(database):
        kept.ask_ahead(sql, parameters)


def _statements(database: BaseDatabaseWrapper) -> Statements | None:
    return cast("DatabaseWrapper", database).statements if database.vendor == "postgresql" else None
