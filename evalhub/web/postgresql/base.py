"""Django's connection to PostgreSQL, with what every page would else ask the server anew."""

from __future__ import annotations

from datetime import UTC
from select import POLLIN, poll

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
        super().init_connection_state()
        adapters = self.connection.adapters
        adapters.register_loader("jsonb", JsonTextLoader)
        if self.timezone is UTC:
            adapters.register_loader("timestamptz", MomentLoader)
        # Left to itself the server plans a join or a long list anew for every page, which takes longer than to carry
        # it out: one plan serves for any values of the parameters.
        self.connection.execute("SET plan_cache_mode = force_generic_plan")
        self.statements = Statements(self.connection)

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
