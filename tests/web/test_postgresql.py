"""The connection to PostgreSQL: statements that are carried out again and again, and whether the server is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection, transaction

from evalhub.web.driver import ask_ahead, connected, execute, select
from tests.builders import make_project

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="It is about PostgreSQL's driver."),
]

SLUGS = "SELECT id, slug FROM teams_project WHERE id > $1 OR slug = $2 ORDER BY id"
KEYS = "SELECT id FROM teams_project WHERE id > $1 OR slug = $2 ORDER BY id"


@pytest.fixture
def server() -> Iterator[Any]:
    """Another connection to the same server, for who looks from there."""
    with connection.get_new_connection(connection.get_connection_params()) as other:
        other.autocommit = True
        yield other


def _kept() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, parameter_types::text FROM pg_prepared_statements")
        return [row for row in cursor.fetchall() if row[0] == SLUGS]


class TestItsStatements:
    def test_the_server_keeps_them_and_values_change(self) -> None:
        one, two = make_project("one"), make_project("two")
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "one"), (two.pk, "two")]
        assert select(connected(), SLUGS, [two.pk, "one"]) == [(one.pk, "one")]
        assert select(connected(), SLUGS, [2**40, "'; $1"]) == []
        assert [types for _, types in _kept()] == ["{bigint,text}"]

    def test_a_new_connection_keeps_its_own(self) -> None:
        make_project("one")
        select(connected(), SLUGS, [0, ""])
        connection.close()
        assert not _kept()
        assert [slug for _, slug in select(connected(), SLUGS, [0, ""])] == ["one"]

    def test_one_begins_a_transaction_as_any_other_does(self, server: Any) -> None:
        project = make_project("one")
        lock = "SELECT id FROM teams_project WHERE slug = $1 FOR UPDATE"
        free = "SELECT id FROM teams_project FOR UPDATE SKIP LOCKED"
        with transaction.atomic():
            assert select(connected(), lock, ["one"]) == [(project.pk,)]
            assert select(connected(), lock, ["one"]) == [(project.pk,)]
            assert server.execute(free).fetchall() == []
        assert server.execute(free).fetchall() == [(project.pk,)]

    def test_they_outlive_what_makes_the_driver_forget_its_own(self) -> None:
        make_project("one")
        seen = select(connected(), SLUGS, [0, ""])
        with transaction.atomic():
            assert select(connected(), SLUGS, [0, ""]) == seen
            with pytest.raises(RuntimeError), transaction.atomic():
                make_project("two")
                raise RuntimeError
        assert not _kept()
        assert select(connected(), SLUGS, [0, ""]) == select(connected(), SLUGS, [0, ""]) == seen
        assert len(_kept()) == 1

    def test_what_is_wrong_with_one_is_told_in_djangos_words_and_the_next_works(self) -> None:
        for _ in range(2):
            with pytest.raises(ProgrammingError, match='column "nothing" does not exist'):
                select(connected(), "SELECT nothing FROM teams_project WHERE id = $1", [1])
            with pytest.raises(Exception, match="division by zero"):
                select(connected(), "SELECT 1 / $1::bigint", [0])
        assert select(connected(), "SELECT 1 / $1::bigint", [1]) == [(1,)]

    def test_text_does_not_end_with_a_zero_byte(self) -> None:
        make_project("one")
        with pytest.raises(DataError, match="0x00"):
            select(connected(), SLUGS, [2**40, "one\0two"])

    def test_a_pooler_that_keeps_none_is_asked_for_none(self) -> None:
        make_project("one")
        database = connected()
        assert database.connection is not None
        database.connection.prepare_threshold = None
        try:
            assert [slug for _, slug in select(database, SLUGS, [0, ""])] == ["one"]
            assert not _kept()
        finally:
            connection.close()


class TestWhatIsAskedAhead:
    """A statement goes with the next one, and its rows are given once."""

    @staticmethod
    def _trips() -> int:
        return int(vars(connected())["statements"].trips)

    def test_it_comes_in_the_next_statements_trip(self) -> None:
        one = make_project("one")
        for each in (SLUGS, KEYS):
            select(connected(), each, [0, ""])
        before = self._trips()
        ask_ahead(connected(), SLUGS, [0, ""])
        ask_ahead(connected(), SLUGS, [one.pk, "none"])
        assert select(connected(), KEYS, [0, "one"]) == [(one.pk,)]
        assert select(connected(), SLUGS, [one.pk, "none"]) == []
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "one")]
        assert self._trips() == before + 1

    def test_it_is_given_once_and_read_anew_after_that(self, server: Any) -> None:
        one = make_project("one")
        ask_ahead(connected(), SLUGS, [0, ""])
        select(connected(), KEYS, [0, ""])
        server.execute("UPDATE teams_project SET slug = 'two'")
        ask_ahead(connected(), SLUGS, [0, ""])
        select(connected(), KEYS, [0, ""])
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "one")]
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "two")]

    def test_whoever_asks_for_it_first_makes_one_trip(self) -> None:
        one = make_project("one")
        ask_ahead(connected(), SLUGS, [0, ""])
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "one")]

    @pytest.mark.parametrize("by", ["a cursor", "the driver", "a transaction"])
    def test_what_may_change_it_makes_it_read_anew(self, by: str) -> None:
        one = make_project("one")
        ask_ahead(connected(), SLUGS, [0, ""])
        select(connected(), KEYS, [0, ""])
        change = "UPDATE teams_project SET slug = 'two'"
        if by == "the driver":
            execute(connected(), change, [])
        elif by == "a cursor":
            type(one).objects.update(slug="two")
        else:
            with transaction.atomic():
                type(one).objects.update(slug="two")
                assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "two")]
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "two")]

    def test_in_a_transaction_nothing_is_read_ahead(self) -> None:
        one = make_project("one")
        with transaction.atomic():
            ask_ahead(connected(), SLUGS, [0, ""])
            select(connected(), KEYS, [0, ""])
            execute(connected(), "UPDATE teams_project SET slug = 'two'", [])
            assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "two")]

    def test_the_next_request_reads_anew(self, server: Any) -> None:
        one = make_project("one")
        ask_ahead(connected(), SLUGS, [0, ""])
        select(connected(), KEYS, [0, ""])
        ask_ahead(connected(), SLUGS, [1, ""])
        # As Django does between two requests, for a connection that is kept.
        connection.close_at = None
        connection.close_if_unusable_or_obsolete()
        server.execute("UPDATE teams_project SET slug = 'two'")
        before = self._trips()
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "two")]
        assert self._trips() == before + 1

    def test_it_outlives_what_makes_the_driver_forget(self) -> None:
        one = make_project("one")
        for each in (SLUGS, KEYS):
            select(connected(), each, [0, ""])
        with pytest.raises(RuntimeError), transaction.atomic():
            make_project("two")
            raise RuntimeError
        ask_ahead(connected(), SLUGS, [0, ""])
        assert select(connected(), KEYS, [0, ""]) == [(one.pk,)]
        assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "one")]

    @pytest.mark.parametrize(
        "wrong", ["SELECT 1 / $1::bigint", "SELECT nothing FROM teams_project WHERE id = $1"]
    )
    def test_what_is_wrong_with_it_is_told_and_the_next_works(self, wrong: str) -> None:
        one = make_project("one")
        for _ in range(2):
            ask_ahead(connected(), wrong, [0])
            with pytest.raises((DataError, ProgrammingError), match=r'division by zero|"nothing"'):
                select(connected(), SLUGS, [0, ""])
            assert select(connected(), SLUGS, [0, ""]) == [(one.pk, "one")]

    def test_a_server_that_went_away_is_told(self, server: Any) -> None:
        [(own,)] = select(connected(), "SELECT pg_backend_pid() WHERE $1 = 1", [1])
        select(connected(), SLUGS, [0, ""])
        ask_ahead(connected(), SLUGS, [0, ""])
        assert server.execute("SELECT pg_terminate_backend(%s, 5000)", [own]).fetchone() == (True,)
        with pytest.raises(OperationalError):
            select(connected(), KEYS, [0, ""])
        connection.close_if_unusable_or_obsolete()
        assert select(connected(), SLUGS, [0, ""]) == []

    def test_a_pooler_that_keeps_no_statements_is_asked_one_by_one(self) -> None:
        make_project("one")
        database = connected()
        assert database.connection is not None
        database.connection.prepare_threshold = None
        try:
            ask_ahead(database, SLUGS, [0, ""])
            select(database, KEYS, [0, ""])
            assert self._trips() == 0
            assert [slug for _, slug in select(database, SLUGS, [0, ""])] == ["one"]
        finally:
            connection.close()


class TestWhetherTheServerIsThere:
    @staticmethod
    def _own() -> int:
        [(pid,)] = select(connected(), "SELECT pg_backend_pid() WHERE $1 = 1", [1])
        return int(pid)

    def test_it_is_not_asked_while_nothing_came_from_it(self, server: Any) -> None:
        own = self._own()
        assert connection.is_usable()
        last = server.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [own]).fetchone()
        assert last == ("SELECT pg_backend_pid() WHERE $1 = 1",)

    def test_one_that_ended_the_connection_is_seen(self, server: Any) -> None:
        own = self._own()
        assert server.execute("SELECT pg_terminate_backend(%s, 5000)", [own]).fetchone() == (True,)
        assert not connection.is_usable()
        # As Django does between two requests.
        connection.health_check_done = False
        assert self._own() != own

    def test_one_that_ends_it_meanwhile_is_told(self, server: Any) -> None:
        server.execute("SELECT pg_terminate_backend(%s, 5000)", [self._own()])
        with pytest.raises(OperationalError):
            self._own()
        connection.close()

    def test_it_is_asked_where_a_message_waits(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("LISTEN news")
            with connection.get_new_connection(connection.get_connection_params()) as other:
                other.autocommit = True
                other.execute("NOTIFY news")
        assert connection.is_usable()

    def test_no_connection_is_none_to_use(self) -> None:
        connection.close()
        assert not connection.is_usable()
