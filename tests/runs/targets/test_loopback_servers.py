"""The servers of tests end with their block: one that went on over a closed socket would slow every later test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests import model_server
from tests.runs import servers


@pytest.mark.parametrize("serving", [lambda: servers.serving(servers.Reply()), model_server.serving])
@pytest.mark.parametrize("failing", [False, True], ids=["as it should", "by an error"])
def test_a_server_ends_with_its_block(
    serving: Callable[[], AbstractContextManager[Any]], failing: bool
) -> None:
    before = set(threading.enumerate())
    try:
        with serving():
            assert set(threading.enumerate()) > before
            if failing:
                raise LookupError
    except LookupError:
        assert failing
    assert set(threading.enumerate()) <= before
