"""Lists by cursor: newest first, and a page costs the same wherever it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Schema
from pydantic import BaseModel, Field

from evalhub.web.paging import SIZE, Page, page_below
from evalhub.web.rest.request_body import Key

Item = TypeVar("Item")
Row = TypeVar("Row")


class Cursor(BaseModel):
    """Which page of a list."""

    cursor: Key | None = Field(None, description="Taken from `next`; left out for the first page.")
    limit: Annotated[int, Field(ge=1, le=200)] = SIZE


class ListOut(Schema, Generic[Item]):
    """A short list that needs no pages."""

    items: list[Item]


class PageOut(Schema, Generic[Item]):
    """Some items, newest first, and the address of the next page; null on the last."""

    items: list[Item]
    next: str | None


def page_of(
    request: HttpRequest,
    rows: QuerySet[Any, Row],
    cursor: Cursor,
    show: Callable[[Sequence[Row]], Sequence[Any]] = list,
) -> dict[str, Any]:
    """Return one page as JSON. One query beside those that `show` makes."""
    page = page_below(rows, str(cursor.cursor or ""), size=cursor.limit)
    return show_page(request, Page(show(page.rows), page.before, page.first))


def show_page(request: HttpRequest, page: Page[Any]) -> dict[str, Any]:
    """Return a page as `PageOut` has it."""
    return {"items": page.rows, "next": _next(request, page.before)}


def _next(request: HttpRequest, before: int | None) -> str | None:
    if before is None:
        return None
    query = request.GET.copy()
    query["cursor"] = str(before)
    return f"{request.path}?{query.urlencode()}"
