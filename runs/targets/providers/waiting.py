"""Wait for calls that can't be interrupted; abandon them on timeout or cancellation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.2


class Cancelled(Exception):
    """The call was cancelled."""


class TimeLimitExceeded(Exception):
    """The time limit was exceeded."""


@dataclass
class TimeLimit:
    """A time limit from now on, and a check for cancellation."""

    seconds: float
    cancelled: Callable[[], bool] = lambda: False
    began: float = field(default_factory=time.monotonic)

    @property
    def passed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Return the seconds until the limit, at least 0.0."""
        return max(0.0, self.seconds - self.passed)

    def begin(self) -> None:
        """Restart the time limit."""
        self.began = time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises `Cancelled`; raises `TimeLimitExceeded` at once if the wait exceeds the limit."""
        if seconds >= self.left:
            raise TimeLimitExceeded
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.cancelled():
                raise Cancelled
            time.sleep(min(left, LOOK_SECONDS))


@dataclass
class _Call(Generic[T]):
    """One call in its own thread, with its result or error."""

    call: Callable[[], T]
    result: list[T] = field(default_factory=list)
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result.append(self.call())
        # Any exception is raised again in the waiting thread; here it would be lost.
        except BaseException as error:
            self.error = error


def within(call: Callable[[], T], patience: TimeLimit) -> T:
    """Return the call's result or raise its exception, within the time limit.

    Raises `Cancelled` or `TimeLimitExceeded`; the call then goes on in its thread, and nobody hears of its end. It should have
    the time that is left as its own limit, so that it ends soon after: a call of litellm has it for each wait on its
    connection, which a server that sends a byte now and then can draw out.
    """
    running = _Call(call)
    # A daemon thread, because a hanging call must not keep the process alive.
    thread = threading.Thread(target=running.run, name="model-call", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(min(LOOK_SECONDS, patience.left))
        if not thread.is_alive():
            break
        if patience.cancelled():
            raise Cancelled
        if patience.left <= 0:
            raise TimeLimitExceeded
    if running.error is not None:
        raise running.error
    return running.result[0]
