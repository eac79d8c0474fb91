"""DATABASE_URL: where the database is, and how statements are prepared there."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from evalhub.environment import parse_database_url
from evalhub.teams.models import Project


@pytest.mark.parametrize(
    ("url", "prepare_threshold"),
    [
        ("postgresql://evalhub@db/evalhub", 5),
        ("postgresql://evalhub@db/evalhub?prepare_threshold=0", 0),
        ("postgresql://evalhub@db/evalhub?prepare_threshold=none", None),
        ("postgresql://evalhub@db/evalhub?pool_mode=transaction", None),
        ("postgresql://evalhub@db/evalhub?pool_mode=session", 5),
    ],
)
def test_statements_are_prepared_unless_a_pooler_keeps_none(url: str, prepare_threshold: int | None) -> None:
    assert parse_database_url(url)["OPTIONS"]["prepare_threshold"] == prepare_threshold


def test_other_options_are_handed_on() -> None:
    options = parse_database_url("postgresql://evalhub@db/evalhub?sslmode=require&host=/run/db")
    assert (options["HOST"], options["OPTIONS"]["sslmode"]) == ("/run/db", "require")


def test_an_invalid_number_is_reported() -> None:
    with pytest.raises(ImproperlyConfigured, match="prepare_threshold of DATABASE_URL is 'often'"):
        parse_database_url("postgresql://evalhub@db/evalhub?prepare_threshold=often")


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="Only PostgreSQL prepares statements.")
def test_the_connection_has_it() -> None:
    connection.ensure_connection()
    assert connection.connection.prepare_threshold == 5


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="Only PostgreSQL prepares statements.")
def test_the_server_prepares_a_repeated_query() -> None:
    for slug in map(str, range(8)):
        Project.objects.filter(slug=slug).first()
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        assert any("teams_project" in statement for (statement,) in cursor.fetchall())


@pytest.mark.parametrize(
    ("option", "disabled"), [("", False), ("?pool_mode=session", False), ("?pool_mode=transaction", True)]
)
def test_a_pool_of_transactions_gets_no_cursors(option: str, disabled: bool) -> None:
    found = parse_database_url(f"postgresql://evalhub@db/evalhub{option}")
    assert found["DISABLE_SERVER_SIDE_CURSORS"] is disabled
    assert "pool_mode" not in found["OPTIONS"]


def test_a_pool_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="pool_mode of DATABASE_URL is 'statement'"):
        parse_database_url("postgresql://evalhub@db/evalhub?pool_mode=statement")
