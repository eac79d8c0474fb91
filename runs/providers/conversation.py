"""Holds the conversation with one running process: feeds it, listens to it, ends it."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import IO, Literal, Protocol

from runs.profiles import Limits
from runs.providers.capture import Capture
from runs.providers.process_tree import (
    Process,
    descendants,
    end_left_behind,
    hold,
    read_process,
    release,
    send,
    send_group,
)
from runs.providers.watchdog import INTERVAL_SECONDS, exceeded

Reason = Literal["", "timeout", "cancelled", "flood", "limits"]

CHUNK = 65536
CANCEL_SECONDS = 0.15
DRAIN_SECONDS = 1.0
"""How long the pipes are read on after the process has ended and what it left was killed."""
UNKILLABLE_SECONDS = 5.0
"""A process that SIGKILL does not end for so long hangs in the kernel; it is given up."""
WITHOUT_PIDFD_SECONDS = 0.02


class Sink(Protocol):
    """Gets what a process prints while it runs."""

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None: ...


@dataclass(frozen=True)
class Stop:
    """The reasons to end a process early."""

    timeout_seconds: float
    grace_seconds: float
    flood_limit: int
    cancelled: Callable[[], bool] | None
    limits: Limits


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


@dataclass
class Conversation:
    """One process from its start to its end. `hold` is called once; then the other fields tell."""

    process: subprocess.Popen[bytes]
    marker: str
    """Marks the descendants; empty where a pid namespace contains them."""
    stdin: bytes | None
    output_limit: int
    stop: Stop
    stream_to: Path | None = None
    log: Sink | None = None

    exit_code: int | None = None
    reason: Reason = ""
    sentence: str = ""
    seconds: float = 0.0
    left_behind: int = 0
    streams: Streams = field(init=False)

    def __post_init__(self) -> None:
        self.streams = Streams.of(self.output_limit)
        # Not `selectors`, whose bookkeeping costs as much as all the rest of a short conversation.
        self._poll = select.poll()
        self._waiting: dict[int, Callable[[], None]] = {}
        self._began = time.monotonic()
        self._deadline = self._began + self.stop.timeout_seconds
        self._kill_at = self._give_up_at = float("inf")
        self._next_cancel_look = self._began
        self._next_watch = self._began + INTERVAL_SECONDS
        self._ended = False
        self._known: set[Process] = set()
        self._pidfd = -1
        self._sink: FileIO | None = None

    def hold(self) -> None:
        """Stay with the process until it has ended and nothing of it is left."""
        try:
            self._open()
            while not self._finished():
                self._look()
                for descriptor, _ in self._poll.poll(math.ceil(self._patience() * 1000)):
                    self._waiting[descriptor]()
        finally:
            self._close()

    def _open(self) -> None:
        hold(self.process.pid)
        if self.stream_to is not None:
            self._sink = self.stream_to.open("wb", buffering=0)
        if self.process.stdout is not None:
            self._listen(self.process.stdout, self.streams.stdout, "stdout")
        if self.process.stderr is not None:
            self._listen(self.process.stderr, self.streams.stderr, "stderr")
        if self.process.stdin is not None:
            self._feed(self.process.stdin, memoryview(self.stdin or b""))
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.process.pid)
            self._wait(self._pidfd, select.POLLIN, self._end)

    def _wait(self, descriptor: int, event: int, then: Callable[[], None]) -> None:
        self._poll.register(descriptor, event)
        self._waiting[descriptor] = then

    def _wait_no_more(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._waiting[descriptor]

    def _listen(self, pipe: IO[bytes], capture: Capture, name: Literal["stdout", "stderr"]) -> None:
        descriptor = pipe.fileno()

        def take() -> None:
            chunk = os.read(descriptor, CHUNK)
            if not chunk:
                self._wait_no_more(descriptor)
                return
            capture.add(chunk)
            self.streams.merged.add(chunk)
            if self._sink is not None:
                self._sink.write(chunk)
            if self.log is not None:
                self.log.take(name, chunk)

        self._wait(descriptor, select.POLLIN, take)

    def _feed(self, pipe: IO[bytes], rest: memoryview) -> None:
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)

        def give() -> None:
            nonlocal rest
            try:
                rest = rest[os.write(descriptor, rest[:CHUNK]) :] if rest else rest
            except BrokenPipeError:  # it does not want to hear the rest
                rest = rest[:0]
            if not rest:
                self._wait_no_more(descriptor)
                pipe.close()

        self._wait(descriptor, select.POLLOUT, give)

    def _patience(self) -> float:
        """Seconds until something has to be looked at although nothing happens."""
        now = time.monotonic()
        moments = [self._give_up_at, self._kill_at]
        if not self.reason and not self._ended:
            moments.append(self._deadline)
            if self.stop.cancelled is not None:
                moments.append(self._next_cancel_look)
            if self.stop.limits.watched:
                moments.append(self._next_watch)
        if self._pidfd < 0 and not self._ended:
            moments.append(now + WITHOUT_PIDFD_SECONDS)
        return max(0.0, min(min(moments) - now, 3600.0))

    def _look(self) -> None:
        """Act on what has happened or on what the clock says."""
        if self._pidfd < 0 and not self._ended and self.process.poll() is not None:
            self._end()
        if self._ended:
            return
        now = time.monotonic()
        if not self.reason:
            self._look_for_reasons(now)
        elif now >= self._kill_at:
            self._kill(now)

    def _look_for_reasons(self, now: float) -> None:
        if self.streams.merged.total > self.stop.flood_limit:
            size = self.stop.flood_limit >> 20
            self._terminate("flood", f"The command printed more than {size} MB and was ended.", now)
        elif now >= self._deadline:
            seconds = self.stop.timeout_seconds
            self._terminate("timeout", f"The command timed out after {seconds:g} s and was ended.", now)
        elif self.stop.cancelled is not None and now >= self._next_cancel_look:
            self._next_cancel_look = now + CANCEL_SECONDS
            if self.stop.cancelled():
                self._terminate("cancelled", "The command was cancelled and ended.", now)
        elif self.stop.limits.watched and now >= self._next_watch:
            self._watch(now)

    def _watch(self, now: float) -> None:
        tree = descendants(self.process.pid)
        self._known.update(tree)
        root = read_process(self.process.pid)
        if sentence := exceeded(self.stop.limits, [*tree, *([root] if root else [])]):
            self._terminate("limits", sentence, now)
        self._next_watch = time.monotonic() + INTERVAL_SECONDS

    def _terminate(self, reason: Reason, sentence: str, now: float) -> None:
        """Ask all of it to end. A sandbox's own process is spared: it would take the rest down at once."""
        self.reason, self.sentence = reason, sentence
        tree = descendants(self.process.pid)
        self._known.update(tree)
        if self.marker:
            send_group(self.process.pid, signal.SIGTERM)
        send(tree, signal.SIGTERM)
        self._kill_at = now if reason == "flood" else now + self.stop.grace_seconds

    def _kill(self, now: float) -> None:
        self._kill_at = float("inf")
        self._give_up_at = now + UNKILLABLE_SECONDS
        self._known.update(descendants(self.process.pid))
        send_group(self.process.pid, signal.SIGKILL)

    def _end(self) -> None:
        """The process itself has ended: what it left behind follows, and its pipes are read to their end."""
        self._ended = True
        self._kill_at = float("inf")
        # While it is not reaped, its number cannot be that of a stranger's group.
        send_group(self.process.pid, signal.SIGKILL)
        if self.marker:
            self.left_behind = end_left_behind(self.process.pid, self.marker, self._known)
        release(self.process.pid)
        self.exit_code = self.process.wait()
        self.seconds = time.monotonic() - self._began
        self._give_up_at = time.monotonic() + DRAIN_SECONDS
        if self._pidfd >= 0:
            self._wait_no_more(self._pidfd)

    def _finished(self) -> bool:
        if time.monotonic() >= self._give_up_at:
            return True
        return self._ended and not self._waiting

    def _close(self) -> None:
        if not self._ended:
            # Given up, or an exception on its way through: nothing may be left running for it.
            self._known.update(descendants(self.process.pid))
            send_group(self.process.pid, signal.SIGKILL)
            send(self._known, signal.SIGKILL)
            release(self.process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.exit_code = self.process.wait(timeout=1)
            self.seconds = time.monotonic() - self._began
        if self._pidfd >= 0:
            os.close(self._pidfd)
        if self._sink is not None:
            self._sink.close()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
