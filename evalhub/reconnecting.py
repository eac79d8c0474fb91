"""Lets a Celery worker connect again where kombu trips over a connection that Redis has closed.

See docs/decisions/0014-workers-outlive-their-broker.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery import bootsteps

logger = logging.getLogger(__name__)

LIBRARIES = frozenset({"kombu", "redis", "valkey"})


class Reconnecting(bootsteps.StartStopStep):
    """Turns kombu's AttributeError on a closed connection into a connection error."""

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        parent.loop = _with_connection_errors(parent.loop)


def _with_connection_errors(loop: Callable[..., object]) -> Callable[..., object]:
    def run(*args: Any) -> object:
        try:
            return loop(*args)
        except AttributeError as error:
            if not _is_raised_by_libraries(error):
                raise
            logger.warning("the broker closed a connection that was in use: %s", error)
            raise ConnectionResetError(f"The broker closed the connection: {error}") from error

    return run


def _is_raised_by_libraries(error: AttributeError) -> bool:
    """Return whether the error arose in the broker's client, and not in code of ours or of Celery."""
    step = error.__traceback__
    name = ""
    while step is not None:
        name = str(step.tb_frame.f_globals.get("__name__", ""))
        step = step.tb_next
    return name.partition(".")[0] in LIBRARIES
