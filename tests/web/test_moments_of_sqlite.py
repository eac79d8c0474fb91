"""Moments are read from SQLite as Django reads them, only quicker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has moments of its own."),
]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-02 03:04:05", AT),
        ("2026-01-02 03:04:05.000678", AT.replace(microsecond=678)),
        ("2026-01-02T03:04:05Z", AT),
        ("2026-01-02 03:04:05+05:30", AT.replace(tzinfo=timezone(timedelta(hours=5, minutes=30)))),
        ("0001-01-01 00:00:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("noon", None),
    ],
)
def test_a_column_of_moments_is_read(text, at):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE moments (at datetime)")
        cursor.execute("INSERT INTO moments VALUES (%s)", [text])
        cursor.execute("SELECT at FROM moments")
        ((read,),) = cursor.fetchall()
        cursor.execute("DROP TABLE moments")
    assert read == at
    assert at is None or read.tzinfo
