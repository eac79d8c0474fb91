"""Statements that a connection to PostgreSQL keeps, carried out with the single steps of its driver.

A cursor of the driver takes the same steps for any statement: it reads the statement, finds out how to write each
parameter and to read each column, and whether the server knows it already. That takes longer than the server does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from struct import Struct
from typing import Any

from psycopg import Connection, RawCursor, abc
from psycopg.adapt import Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8

INT8, UNKNOWN = 20, 0
"""Types of parameters: one for all numbers, as each other would be another statement; of texts the server finds it."""
_int8 = Struct(">q").pack
Parameters = Sequence[int | str]
Rows = list[tuple[Any, ...]]


class Statements:
    """What the server keeps for one connection, by the statement's text, and how its columns are read."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._numbers = count()
        self._names: dict[str, bytes] = {}
        self._readers: dict[str, abc.Transformer] = {}

    def rows(self, sql: str, parameters: Parameters) -> Rows:
        """Carry out a statement with `$1`, `$2`, … for its parameters and return its rows. Raises `psycopg.Error`."""
        if not self._may_keep():
            return self._by_cursor(sql, parameters)
        try:
            return self._by_name(sql, parameters)
        except InvalidSqlStatementName:
            # The driver lets the server forget all of them after a transaction that was rolled back.
            self._names.clear()
            return self._by_name(sql, parameters)

    def _may_keep(self) -> bool:
        """Tell whether the server keeps statements, which a pooler may not, and no transaction would be lost with one."""
        return self._connection.prepare_threshold is not None and self._connection.autocommit

    def _by_cursor(self, sql: str, parameters: Parameters) -> Rows:
        given = [Int8(each) if isinstance(each, int) else each for each in parameters]
        with RawCursor(self._connection) as cursor:
            return cursor.execute(sql, given, prepare=True, binary=True).fetchall()

    def _by_name(self, sql: str, parameters: Parameters) -> Rows:
        name = self._names.get(sql) or self._prepare(sql, parameters)
        self._connection.pgconn.send_query_prepared(
            name,
            [_int8(each) if isinstance(each, int) else each.encode() for each in parameters],
            # Text as well: in its other form it ends with the first zero byte.
            [Format.BINARY] * len(parameters),
            result_format=Format.BINARY,
        )
        return self._read(sql, self._result(ExecStatus.TUPLES_OK))

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
        result: PGresult
        [result] = self._connection.wait(execute(self._connection.pgconn))
        if result.status != expected:
            raise error_from_result(result, encoding=self._connection.info.encoding)
        return result


def _type(parameter: int | str) -> int:
    return INT8 if isinstance(parameter, int) else UNKNOWN
