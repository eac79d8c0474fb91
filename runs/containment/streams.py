"""The pipes of a running process: what is read of them is kept, what is written to them is fed."""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Literal, Protocol

from runs.containment.capture import Capture

CHUNK = 65536


class Sink(Protocol):
    """Gets what a process prints while it runs."""

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None: ...


@dataclass
class Streams:
    """What was printed, by stream and in order of arrival."""

    stdout: Capture
    stderr: Capture
    merged: Capture

    @classmethod
    def of(cls, limit: int) -> Streams:
        """Three empty captures."""
        return cls(Capture(limit), Capture(limit), Capture(limit))

    @property
    def truncated(self) -> bool:
        """Whether any stream lost its middle."""
        return self.stdout.truncated or self.stderr.truncated or self.merged.truncated


class Waiting:
    """What a conversation waits for: open descriptors, each with what is done once it is ready."""

    def __init__(self) -> None:
        # Not `selectors`, whose bookkeeping costs as much as all the rest of a short conversation.
        self._poll = select.poll()
        self._then: dict[int, Callable[[], None]] = {}

    def __bool__(self) -> bool:
        return bool(self._then)

    def add(self, descriptor: int, event: int, then: Callable[[], None]) -> None:
        """Wait for an event of `select.poll`."""
        self._poll.register(descriptor, event)
        self._then[descriptor] = then

    def remove(self, descriptor: int) -> None:
        """Wait for it no more."""
        self._poll.unregister(descriptor)
        del self._then[descriptor]

    def take_turns(self, seconds: float) -> None:
        """Wait at most so long, and do what belongs to each descriptor that is ready."""
        for descriptor, _ in self._poll.poll(math.ceil(seconds * 1000)):
            self._then[descriptor]()

    def listen(self, pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
        """Hand on what comes out of a pipe until its end."""
        descriptor = pipe.fileno()

        def read() -> None:
            chunk = os.read(descriptor, CHUNK)
            if chunk:
                take(chunk)
            else:
                self.remove(descriptor)

        self.add(descriptor, select.POLLIN, read)

    def feed(self, pipe: IO[bytes], rest: memoryview) -> None:
        """Write to a pipe as it takes it, then close it."""
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)

        def give() -> None:
            nonlocal rest
            try:
                rest = rest[os.write(descriptor, rest[:CHUNK]) :] if rest else rest
            except BrokenPipeError:  # it does not want to hear the rest
                rest = rest[:0]
            if not rest:
                self.remove(descriptor)
                pipe.close()

        self.add(descriptor, select.POLLOUT, give)
