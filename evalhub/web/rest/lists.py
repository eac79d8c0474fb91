"""Short lists that need no pages."""

from __future__ import annotations

from typing import Generic, TypeVar

from ninja import Schema

Item = TypeVar("Item")


class ListOut(Schema, Generic[Item]):
    """A short list that needs no pages."""

    items: list[Item]
