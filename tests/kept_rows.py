"""Rows that all tests of a module read: stored once, and every test ends where it began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeVar

from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

T = TypeVar("T")


def kept_rows(blocker: DjangoDbBlocker, make: Callable[[], T]) -> Iterator[T]:
    """Give what `make` stores, as the body of a fixture of a module; its rows are gone after the last test.

    They are stored in a transaction that stays open, so the transaction of each test with `db` is a savepoint in it.
    """
    with blocker.unblock(), ExitStack() as stack:
        stack.enter_context(transaction.atomic())
        made = make()
        # Once here: PostgreSQL would look at every row's foreign keys again after each test.
        connection.check_constraints()
        whole = stack.pop_all()
    yield made
    with blocker.unblock(), whole:
        transaction.set_rollback(True)
