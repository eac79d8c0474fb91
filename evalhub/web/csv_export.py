"""Send a page's table as CSV, at the page's address with `?format=csv`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import NamedTuple

from django.http import Http404, HttpRequest, StreamingHttpResponse

from evalhub.lib.timestamps import format_timestamp
from evaluators.redaction import redact_patterns

FORMAT, TABLE, CSV = "format", "table", "csv"
_WIDE = tuple(chr(ord(sign) + 0xFEE0) for sign in "=+-@")
"""The same signs in full width, which some spreadsheets read alike."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", *_WIDE)
"""Beginnings of cells that spreadsheets run as formulas (OWASP, CSV Injection)."""

Cell = str | int | float | datetime | date | None


class Table(NamedTuple):
    """A table of a page: values without units, in the units of its column names."""

    name: str
    """The file's name without its ending."""
    header: tuple[str, ...]
    rows: Iterable[tuple[Cell, ...]]


class _Echo:
    """A file for `csv.writer` whose `write` returns the line."""

    def write(self, line: str) -> str:
        return line


def csv_query(request: HttpRequest, table: str = "") -> str:
    """Return the query string of a page's table as CSV, with the page's filters."""
    query = request.GET.copy()
    query[FORMAT] = CSV
    if table:
        query[TABLE] = table
    return query.urlencode()


def chosen_table(
    request: HttpRequest, tables: Mapping[str, Callable[[], Table]]
) -> StreamingHttpResponse | None:
    """Return the table that the address names, else the first, as a download; None for a page.

    Raises `Http404` for another name.
    """
    if request.GET.get(FORMAT) != CSV:
        return None
    name = request.GET.get(TABLE) or next(iter(tables))
    if name not in tables:
        raise Http404
    table = tables[name]()
    response = StreamingHttpResponse(csv_lines(table), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{table.name}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def csv_lines(table: Table) -> Iterator[str]:
    """Yield a table's lines (RFC 4180), the header first. Secrets are redacted, formulas disarmed."""
    writer = csv.writer(_Echo())
    yield writer.writerow(table.header)
    for row in table.rows:
        yield writer.writerow([_cell(value) for value in row])


def _cell(value: Cell) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return format_timestamp(value) or ""
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, int | float) else _text(value)


def _text(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula, without what no file can hold."""
    safe = redact_patterns(text.encode(errors="replace").decode().replace("\0", ""))
    return f"'{safe}" if safe.startswith(FORMULA) else safe
