"""What takes the space: the database's tables, and the stored files."""

from __future__ import annotations

from django.db import OperationalError, connection
from django.db.models import Max, Sum

from runs.models import Artifact

_SIZES = {
    "postgresql": (
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    ),
    # Indexes have pages of their own.
    "sqlite": (
        "SELECT named.tbl_name, SUM(pages.pgsize) FROM dbstat AS pages "
        "JOIN sqlite_master AS named ON named.name = pages.name WHERE pages.aggregate = TRUE GROUP BY named.tbl_name"
    ),
}
FILES = "stored files"


def space_taken() -> dict[str, int]:
    """Return the bytes of each table with its indexes, and of the stored files under `FILES`; the largest first.

    No tables where SQLite was built without its statistics. Reads all of an SQLite database.
    """
    sizes = {FILES: stored_bytes()}
    try:
        with connection.cursor() as cursor:
            cursor.execute(_SIZES[connection.vendor])
            sizes |= {name: int(size) for name, size in cursor.fetchall()}
    except OperationalError as error:
        if "no such table: dbstat" not in str(error):
            raise
    return dict(sorted(sizes.items(), key=lambda each: (-each[1], each[0])))


def stored_bytes() -> int:
    """Return the bytes of the files that trials name; equal content is stored once. One query."""
    contents = Artifact.objects.order_by().values("sha256").annotate(bytes=Max("size"))
    return contents.aggregate(total=Sum("bytes"))["total"] or 0
