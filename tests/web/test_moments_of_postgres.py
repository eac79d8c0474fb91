"""Moments are read from PostgreSQL as its driver reads them, only quicker."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from psycopg.types.datetime import TimestamptzLoader

from evalhub.web.postgresql.reading import MomentLoader

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "text",
    [
        "2026-10-08 23:10:41.491255+00",
        "2026-10-08 23:10:41.4+00",
        "2026-10-08 23:10:41+00",
        "2026-10-08 23:10:41+05:30",
        "0001-01-01 00:00:00+00",
        "9999-12-31 23:59:59.999999+00",
        "1900-01-01 00:00:00+00:19:32",
    ],
)
def test_a_moment_is_the_same(text: str) -> None:
    read = MomentLoader(0).load(text.encode())
    assert read == TimestamptzLoader(0).load(text.encode())
    assert read.tzinfo is UTC


@pytest.mark.parametrize("text", ["infinity", "0044-03-15 00:00:00+00 BC", "noon"])
def test_what_is_no_moment_of_python_fails_as_it_does_with_the_driver(text: str) -> None:
    with pytest.raises(Exception) as own:
        MomentLoader(0).load(text.encode())
    with pytest.raises(type(own.value)):
        TimestamptzLoader(0).load(text.encode())


@pytest.mark.skipif(connection.vendor != "postgresql", reason="There is no such cursor on SQLite.")
def test_every_cursor_reads_with_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)])
        ((read,),) = cursor.fetchall()
    assert (read, read.tzinfo) == (datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), UTC)
    kept = connection.connection.adapters.get_loader(
        connection.connection.adapters.types["timestamptz"].oid, 0
    )
    assert kept is MomentLoader
