"""Read and write the pipes of a running process."""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Literal, Protocol

from runs.sandbox.capture import Capture

CHUNK = 65536


class Sink(Protocol):
    """Receives a process's output while it runs."""

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None: ...


@dataclass
class Streams:
    """Output by stream and in order of arrival."""

    stdout: Capture
    stderr: Capture
    merged: Capture

    @classmethod
    def of(cls, limit: int) -> Streams:
        """Create three empty captures."""
        return cls(Capture(limit), Capture(limit), Capture(limit))

    @property
    def truncated(self) -> bool:
        """Return whether any stream was truncated."""
        return self.stdout.truncated or self.stderr.truncated or self.merged.truncated


class PollLoop:
    """Open descriptors with their callbacks."""

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
        """Stop waiting for it."""
        self._poll.unregister(descriptor)
        del self._then[descriptor]

    def take_turns(self, seconds: float) -> None:
        """Wait at most so long and call the callbacks of ready descriptors."""
        for descriptor, _ in self._poll.poll(math.ceil(seconds * 1000)):
            self._then[descriptor]()

    def listen(self, pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
        """Pass a pipe's output on until it closes."""
        descriptor = pipe.fileno()

        def read() -> None:
            chunk = os.read(descriptor, CHUNK)
            if chunk:
                take(chunk)
            else:
                self.remove(descriptor)

        self.add(descriptor, select.POLLIN, read)

    def feed(self, pipe: IO[bytes], rest: memoryview) -> None:
        """Write to a pipe as it accepts data, then close it."""
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)

        def give() -> None:
            nonlocal rest
            try:
                rest = rest[os.write(descriptor, rest[:CHUNK]) :] if rest else rest
            except BrokenPipeError:  # it closed its input early
                rest = rest[:0]
            if not rest:
                self.remove(descriptor)
                pipe.close()

        self.add(descriptor, select.POLLOUT, give)
