"""How values of PostgreSQL are read where its driver takes longer, or decodes what Django decodes."""

from __future__ import annotations

from datetime import UTC, datetime

from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.datetime import TimestamptzLoader


class MomentLoader(TimestamptzLoader):
    """Reads a moment with the standard library, and whatever that does not know with the driver's own expression."""

    timezone = UTC
    """Django looks at it: a connection in another time zone gets a loader of its own."""

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(bytes(data).decode()).astimezone(UTC)
        except ValueError:
            return super().load(data).replace(tzinfo=UTC)


class JsonTextLoader(Loader):
    """Reads JSON in the server's binary form as the text it is, which Django decodes: a version and the text."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return bytes(data)[1:].decode()
