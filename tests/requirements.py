"""Programs that some tests need: missing ones skip a test, unless EVALHUB_TEST_REQUIRE names them."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def required() -> frozenset[str]:
    """Return what may not be missing here: any of agents, browser, pgbouncer, postgres, programs, redis, sandbox."""
    return frozenset(
        word.strip() for word in os.environ.get("EVALHUB_TEST_REQUIRE", "").split(",") if word.strip()
    )


def missing(what: str, sentence: str) -> NoReturn:
    """Skip the test, or fail it where this machine must have what it needs."""
    if what in required():
        pytest.fail(f"{sentence} EVALHUB_TEST_REQUIRE asks for it.")
    pytest.skip(sentence)
