"""Django's connection to PostgreSQL, with what every page would else ask the server anew."""

from __future__ import annotations

from datetime import UTC
from select import POLLIN, poll
from typing import Any

from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn

from evalhub.web.postgresql.reading import JsonTextLoader, MomentLoader
from evalhub.web.postgresql.statements import Statements


class DatabaseWrapper(base.DatabaseWrapper):
    """Reads moments and JSON quickly, plans a prepared statement once, and looks whether the server is still there."""

    statements: Statements
    """Those of its connection that are carried out again and again."""

    def init_connection_state(self) -> None:
        """Set up a connection that was just opened."""
        self.statements = Statements(self.connection)
        super().init_connection_state()
        adapters = self.connection.adapters
        adapters.register_loader("jsonb", JsonTextLoader)
        if self.timezone is UTC:
            adapters.register_loader("timestamptz", MomentLoader)
        # Left to itself the server plans a join or a long list anew for every page, which takes longer than to carry
        # it out: one plan serves for any values of the parameters.
        self.connection.execute("SET plan_cache_mode = force_generic_plan")

    def create_cursor(self, name: str | None = None) -> Any:
        """Return Django's cursor. What it is for may change what was read ahead."""
        self.statements.forget_rows()
        return super().create_cursor(name)

    def close_if_unusable_or_obsolete(self) -> None:
        """Begin and end a request: nothing that was read ahead outlives it."""
        if self.connection is not None:
            self.statements.forget()
        super().close_if_unusable_or_obsolete()

    def is_usable(self) -> bool:
        """Tell whether the connection can be used, as Django asks before each request.

        A server that has gone has closed its end, which can be read. Where there is nothing to read, it is not asked.
        """
        if self.connection is None or not _is_silent(self.connection.pgconn):
            return bool(super().is_usable())
        return True


def _is_silent(server: PGconn) -> bool:
    """Tell whether nothing is under way and nothing has come from the server."""
    if server.transaction_status != TransactionStatus.IDLE:
        return False
    came = poll()
    came.register(server.socket, POLLIN)
    return not came.poll(0)
