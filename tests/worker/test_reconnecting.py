"""A worker connects again when kombu trips over a connection that was closed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from kombu.common import maybe_declare

from evalhub.broker_outages import Reconnecting
from evalhub.celery import app


def guarded(loop: Callable[..., object]) -> Callable[..., object]:
    """Return a consumer's event loop as a worker runs it."""
    consumer = SimpleNamespace(loop=loop)
    Reconnecting(consumer)
    return consumer.loop


def test_an_attribute_error_of_kombu_is_a_lost_connection():
    def loop(*_: object) -> None:
        # As on a connection that is None by now: it arises within kombu.
        maybe_declare(None)

    with pytest.raises(ConnectionResetError, match="The broker closed the connection"):
        guarded(loop)()


def test_celery_connects_again_after_that_error():
    with app.connection_for_read() as connection:
        assert issubclass(ConnectionResetError, connection.connection_errors)


def test_an_attribute_error_of_ours_still_ends_the_worker():
    def loop(*_: object) -> None:
        None.disconnect()

    with pytest.raises(AttributeError):
        guarded(loop)()


def test_the_loop_gets_what_celery_gives_it():
    assert guarded(lambda *words: words)("a", 2) == ("a", 2)


def test_every_worker_has_the_guard():
    assert Reconnecting in app.steps["consumer"]
