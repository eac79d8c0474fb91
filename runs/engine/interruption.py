"""Signals that interrupt a command, as CI services send them: SIGINT, then SIGTERM, then a kill."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOP_SECONDS = 2.5
"""How long running trials have to end before the results of the finished ones are written."""


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code_of(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code of shells for a program that the signal ended."""
    return 128 + (interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the first SIGINT or SIGTERM, and ignore further ones from then on.

    A second one would end the command before it has written and printed its results. Elsewhere than in the main
    thread, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def interrupt(number: int, frame: FrameType | None) -> None:
        for signal_number in SIGNALS:
            signal.signal(signal_number, signal.SIG_IGN)
        raise Interrupted(number)

    for number in SIGNALS:
        # A command in the background of a shell ignores SIGINT.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)
