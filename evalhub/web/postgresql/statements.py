"""Statements that a connection to PostgreSQL keeps, carried out with the single steps of its driver.

A cursor of the driver takes the same steps for any statement: it reads the statement, finds out how to write each
parameter and to read each column, and whether the server knows it already. That takes longer than the server does.
To wait for the server's answer takes as long again, so what is asked ahead goes with the next statement in one trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from struct import Struct
from typing import Any

from psycopg import Connection, RawCursor, abc
from psycopg.adapt import Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8

INT8, UNKNOWN = 20, 0
"""Types of parameters: one for all numbers, as each other would be another statement; of texts the server finds it."""
_int8 = Struct(">q").pack
Parameters = Sequence[int | str]
Rows = list[tuple[Any, ...]]
Asked = tuple[str, tuple[int | str, ...]]
"""A statement and its parameters."""


class Statements:
    """What the server keeps for one connection, by the statement's text, and how its columns are read."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.trips = 0
        """How often the server was waited for, to prepare a statement or to carry some out."""
        self._connection = connection
        self._numbers = count()
        self._names: dict[str, bytes] = {}
        self._readers: dict[str, abc.Transformer] = {}
        self._to_ask: dict[Asked, None] = {}
        self._read_ahead: dict[Asked, Rows] = {}

    def rows(self, sql: str, parameters: Parameters) -> Rows:
        """Carry out a statement with `$1`, `$2`, … for its parameters and return its rows. Raises `psycopg.Error`.

        Rows that were read ahead are given once. What is still to be asked ahead is asked now; what is wrong with
        that is raised as well.
        """
        if not self._may_keep():
            return self._by_cursor(sql, parameters)
        own = (sql, tuple(parameters))
        if own in self._read_ahead:
            return self._read_ahead.pop(own)
        asked = [*(self._to_ask | {own: None})]
        self._to_ask.clear()
        try:
            found = self._by_name(asked)
        except InvalidSqlStatementName:
            # The driver lets the server forget all of them after a transaction that was rolled back.
            self._names.clear()
            found = self._by_name(asked)
        if len(asked) == 1:
            return found[0]
        self._read_ahead |= zip(asked, found, strict=True)
        return self._read_ahead.pop(own)

    def ask_ahead(self, sql: str, parameters: Parameters) -> None:
        """Ask for a statement's rows together with the next statement that is carried out.

        They are given to whoever carries it out with the same parameters before they are forgotten.
        """
        asked = (sql, tuple(parameters))
        if self._may_keep() and asked not in self._read_ahead:
            self._to_ask[asked] = None

    def forget_rows(self) -> None:
        """Give up what was read ahead, for something is carried out that may change it."""
        self._read_ahead.clear()

    def forget(self) -> None:
        """Give up also what is still to be asked, for the request is over."""
        self._to_ask.clear()
        self._read_ahead.clear()

    def _may_keep(self) -> bool:
        """Tell whether the server keeps statements, which a pooler may not, and no transaction would be lost with one."""
        return self._connection.prepare_threshold is not None and self._connection.autocommit

    def _by_cursor(self, sql: str, parameters: Parameters) -> Rows:
        given = [Int8(each) if isinstance(each, int) else each for each in parameters]
        with RawCursor(self._connection) as cursor:
            return cursor.execute(sql, given, prepare=True, binary=True).fetchall()

    def _by_name(self, asked: Sequence[Asked]) -> list[Rows]:
        steps = [self._sending(*each) for each in asked]
        results = self._piped(steps) if len(steps) > 1 else [self._single(*steps)]
        return [self._read(sql, result) for (sql, _), result in zip(asked, results, strict=True)]

    def _sending(self, sql: str, parameters: Parameters) -> partial[None]:
        return partial(
            self._connection.pgconn.send_query_prepared,
            self._names.get(sql) or self._prepare(sql, parameters),
            [_int8(each) if isinstance(each, int) else each.encode() for each in parameters],
            # Text as well: in its other form it ends with the first zero byte.
            [Format.BINARY] * len(parameters),
            result_format=Format.BINARY,
        )

    def _single(self, step: partial[None]) -> PGresult:
        step()
        return self._result(ExecStatus.TUPLES_OK)

    def _piped(self, steps: Sequence[partial[None]]) -> list[PGresult]:
        """Take the steps without waiting between them, and return the result of each; the first error is raised."""
        server = self._connection.pgconn
        self.trips += 1
        server.enter_pipeline_mode()
        for step in steps:
            step()
        server.pipeline_sync()
        self._connection.wait(send(server))
        # One for each step, and one that says that these were all. The driver's own way of doing this asks again and
        # again whether something has come, which takes the processor from the server.
        results = [self._connection.wait(fetch_many(server))[0] for _ in (*steps, server)]
        server.exit_pipeline_mode()
        del results[-1]
        for result in results:
            self._expect(ExecStatus.TUPLES_OK, result)
        return results

    def _prepare(self, sql: str, parameters: Parameters) -> bytes:
        name = b"evalhub %d" % next(self._numbers)
        self._connection.pgconn.send_prepare(name, sql.encode(), [_type(each) for each in parameters])
        self._result(ExecStatus.COMMAND_OK)
        self._names[sql] = name
        return name

    def _read(self, sql: str, result: PGresult) -> Rows:
        reader = self._readers.get(sql)
        if reader is None:
            reader = Transformer(self._connection)
            reader.set_pgresult(result)
            self._readers[sql] = reader
        else:
            reader.set_pgresult(result, set_loaders=False)
        rows = reader.load_rows(0, result.ntuples, tuple)
        # It would hold the result until the statement is carried out again.
        reader.set_pgresult(None, set_loaders=False)
        return rows

    def _result(self, expected: ExecStatus) -> PGresult:
        self.trips += 1
        result: PGresult
        [result] = self._connection.wait(execute(self._connection.pgconn))
        self._expect(expected, result)
        return result

    def _expect(self, status: ExecStatus, result: PGresult) -> None:
        if result.status != status:
            raise error_from_result(result, encoding=self._connection.info.encoding)


def _type(parameter: int | str) -> int:
    return INT8 if isinstance(parameter, int) else UNKNOWN
