"""A model server on loopback for every test that asks a model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.model_server import ModelServer, serving


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with serving() as server:
        yield server
