"""Waits for what cannot be interrupted, and leaves it behind when time is over or somebody cancels."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.2


class Cancelled(Exception):
    """Somebody does not want the answer any more."""


class TimeLimitExceeded(Exception):
    """The time limit is over."""


@dataclass
class TimeLimit:
    """How long something may take, from now on, and whether anybody still wants it."""

    seconds: float
    cancelled: Callable[[], bool] = lambda: False
    began: float = field(default_factory=time.monotonic)

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds until the limit, 0.0 at the least."""
        return max(0.0, self.seconds - self.passed)

    def begin(self) -> None:
        """Let the time begin only now."""
        self.began = time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises `Cancelled`, and `TimeLimitExceeded` at once where the wait would not end in time."""
        if seconds >= self.left:
            raise TimeLimitExceeded
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.cancelled():
                raise Cancelled
            time.sleep(min(left, LOOK_SECONDS))


@dataclass
class _Call(Generic[T]):
    """One call in a thread of its own, and how it ended."""

    call: Callable[[], T]
    result: list[T] = field(default_factory=list)
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result.append(self.call())
        # Whatever it is, it is raised where the call is waited for: in a thread nobody would hear of it.
        except BaseException as error:
            self.error = error


def within(call: Callable[[], T], patience: TimeLimit) -> T:
    """Return what the call returns, and raise what it raises, as long as patience lasts.

    Raises `Cancelled` or `TimeLimitExceeded`; the call then goes on in its thread, and nobody hears of its end. It should have
    the time that is left as its own limit, so that it ends soon after: a call of litellm has it for each wait on its
    connection, which a server that sends a byte now and then can draw out.
    """
    running = _Call(call)
    # A daemon, for a call that hangs must not keep the process from its end.
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
