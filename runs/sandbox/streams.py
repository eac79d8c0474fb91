"""Read and write the pipes of a running process."""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Literal, Protocol


@dataclass
class Capture:
    """Captured bytes; past `limit` the middle is dropped."""

    limit: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        """Append bytes."""
        self.total += len(chunk)
        room = self.limit - self.limit // 2 - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Trimmed only now and then: cutting a bytearray for every chunk would copy it for every chunk.
        if len(self._tail) > self.limit + 65536:
            self._trim()

    @property
    def truncated(self) -> bool:
        """Whether the middle was dropped."""
        return self.total > self.limit

    def content(self) -> bytes:
        """The captured bytes; a line states how much was dropped."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        self._trim()
        missing = self.total - len(self._head) - len(self._tail)
        return bytes(self._head) + b"\n[... %d bytes left out ...]\n" % missing + bytes(self._tail)

    def _trim(self) -> None:
        keep = self.limit // 2
        del self._tail[: max(0, len(self._tail) - keep)]


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
