"""Feed one running process, capture its output, and stop it when its tree exceeds a limit.

Limits are of time, memory, processes and disk use.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Literal

import psutil

from runs.sandbox.process_tree import (
    SHARED_SECONDS,
    LiveProcess,
    end_left_behind,
    list_descendants,
    marked_processes,
    read_process,
    send_group,
    signal_processes,
)
from runs.sandbox.profiles import ProcessLimits
from runs.sandbox.recording.record import ToolRecord
from runs.sandbox.safe_walk import disk_usage
from runs.sandbox.streams import Capture, PollLoop, Sink, Streams

INTERVAL_SECONDS = 0.2


class WorkerMemory:
    """Latest memory use of each of this worker's commands."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._used: dict[int, int] = {}

    def exceeded(self, root: int, used: int, limit: int) -> str:
        """Record the memory use of `root`. Return why to stop it, empty unless it is the largest over the limit."""
        with self._lock:
            self._used[root] = used
            together = sum(self._used.values()) + psutil.Process().memory_info().rss
            if together <= limit or used < max(self._used.values()):
                return ""
        return (
            f"The commands of this worker used more than {_megabytes(limit)} of memory together. "
            f"This one used the most, {_megabytes(used)}, and was ended."
        )

    def forget(self, root: int) -> None:
        """Forget a command that has ended."""
        with self._lock:
            self._used.pop(root, None)


def exceeded_limit(limits: ProcessLimits, tree: Sequence[LiveProcess]) -> str:
    """Return a sentence on the exceeded limit, or an empty text."""
    if limits.processes is not None and len(tree) > limits.processes:
        return f"The command ran more than {limits.processes} processes at once and was ended."
    if limits.rss_bytes is not None and measure_resident(tree, enough=limits.rss_bytes) > limits.rss_bytes:
        return too_much_memory(limits.rss_bytes)
    if _disk_exceeded(limits):
        return f"The command wrote more than {_megabytes(limits.disk_bytes or 0)} to disk and was ended."
    return ""


def too_much_memory(limit: int) -> str:
    """Return the sentence for a command over its limit of memory."""
    return f"The command used more than {_megabytes(limit)} of memory and was ended."


def measure_resident(tree: Sequence[LiveProcess], *, enough: int) -> int:
    """Return the memory of processes; count shared pages once if the sum could exceed `enough`."""
    used = sum(process.rss_bytes for process in tree)
    return used if used <= enough else sum(map(_own_share, tree))


def _own_share(process: LiveProcess) -> int:
    try:
        return int(process.process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        # It ended after it was listed, and its pages were perhaps shared.
        return 0
    except (psutil.Error, AttributeError):
        # Other users' processes and other systems report only this.
        return process.rss_bytes


def _disk_exceeded(limits: ProcessLimits) -> bool:
    if limits.disk_bytes is None:
        return False
    left = limits.disk_bytes
    for folder in limits.disk:
        left -= disk_usage(folder, enough=left)
        if left < 0:
            return True
    return False


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MB"


Reason = Literal["", "timeout", "cancelled", "lingered", "flood", "limits", "worker"]

CANCEL_SECONDS = 0.15
WITHOUT_PIDFD_SECONDS = 0.02
_worker_memory = WorkerMemory()


@dataclass(frozen=True)
class Stop:
    """Reasons to stop a process early."""

    timeout_seconds: float
    grace_seconds: float
    flood_limit: int
    cancelled: Callable[[], bool] | None
    limits: ProcessLimits
    lingers: Callable[[], bool] | None = None
    """Whether the process has done its work and doesn't end by itself."""


@dataclass
class ProcessDialogue:
    """One process from its start to its end. `hold` is called once; then the other fields tell."""

    process: subprocess.Popen[bytes]
    marker: str
    """Marks descendants; empty if a pid namespace contains them."""
    stdin: bytes | None
    output_limit: int
    stop: Stop
    sinks: Sequence[Sink] = ()
    record: ToolRecord | None = None
    kept_end: socket.socket | None = None
    """The writing end of its standard output, if that is a socket pair."""

    exit_code: int | None = None
    reason: Reason = ""
    sentence: str = ""
    seconds: float = 0.0
    left_behind: int = 0
    streams: Streams = field(init=False)

    def __post_init__(self) -> None:
        self.streams = Streams.of(self.output_limit)
        self._waiting = PollLoop()
        self._began = time.monotonic()
        self._deadline = self._began + self.stop.timeout_seconds
        self._kill_at = self._give_up_at = float("inf")
        self._next_cancel_look = self._began
        self._next_watch = self._began + INTERVAL_SECONDS
        self._ended = False
        self._known: set[LiveProcess] = set()
        self._pidfd = -1

    def hold(self) -> None:
        """Run until the process and its descendants have ended."""
        try:
            self._open()
            while not self._has_finished():
                self._look()
                self._waiting.take_turns(self._patience())
        finally:
            self._close()

    def _open(self) -> None:
        if self.process.stdout is not None:
            self._waiting.listen(self.process.stdout, partial(self._take, "stdout", self.streams.stdout))
        if self.process.stderr is not None:
            self._waiting.listen(self.process.stderr, partial(self._take, "stderr", self.streams.stderr))
        if self.process.stdin is not None:
            self._waiting.feed(self.process.stdin, memoryview(self.stdin or b""))
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.process.pid)
            self._waiting.add(self._pidfd, select.POLLIN, self._end)

    def _take(self, name: Literal["stdout", "stderr"], capture: Capture, chunk: bytes) -> None:
        if self.kept_end is not None and name == "stdout":
            # Node.js writes to a socket without waiting, and loses what isn't taken yet when it exits.
            os.set_blocking(self.kept_end.fileno(), True)
        capture.add(chunk)
        self.streams.merged.add(chunk)
        for sink in self.sinks:
            sink.take(name, chunk)

    def _patience(self) -> float:
        """Return the seconds until the next check."""
        now = time.monotonic()
        moments = [self._give_up_at, self._kill_at]
        if not self.reason and not self._ended:
            moments.append(self._deadline)
            if self._is_asked:
                moments.append(self._next_cancel_look)
            if self.stop.limits.watched:
                moments.append(self._next_watch)
        if self._pidfd < 0 and not self._ended:
            moments.append(now + WITHOUT_PIDFD_SECONDS)
        return max(0.0, min(min(moments) - now, 3600.0))

    def _look(self) -> None:
        """Handle the process's exit and the time limits."""
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
        elif self._is_asked and now >= self._next_cancel_look:
            self._next_cancel_look = now + CANCEL_SECONDS
            if self.stop.cancelled is not None and self.stop.cancelled():
                self._terminate("cancelled", "The command was cancelled and ended.", now)
            elif self.stop.lingers is not None and self.stop.lingers():
                self._terminate("lingered", "", now)
        elif self.stop.limits.watched and now >= self._next_watch:
            self._watch(now)

    @property
    def _is_asked(self) -> bool:
        """Whether somebody is asked now and then if the process is to end."""
        return self.stop.cancelled is not None or self.stop.lingers is not None

    def _watch(self, now: float) -> None:
        below = set(list_descendants(self.process.pid, max_age=SHARED_SECONDS))
        if self.marker:
            below.update(marked_processes(self.process.pid, self.marker))
        self._known.update(below)
        root = read_process(self.process.pid)
        tree = [*below, root] if root else [*below]
        if sentence := exceeded_limit(self.stop.limits, tree):
            self._terminate("limits", sentence, now)
        elif sentence := self._too_much_for_worker(tree):
            self._terminate("worker", sentence, now)
        self._next_watch = time.monotonic() + INTERVAL_SECONDS

    def _too_much_for_worker(self, tree: Sequence[LiveProcess]) -> str:
        limit = self.stop.limits.worker_bytes
        if limit is None:
            return ""
        return _worker_memory.exceeded(self.process.pid, sum(each.rss_bytes for each in tree), limit)

    def _terminate(self, reason: Reason, sentence: str, now: float) -> None:
        """Send SIGTERM to all processes but the sandbox's own, which would kill the rest at once."""
        self.reason, self.sentence = reason, sentence
        if self.record:
            self.record.stop()
        tree = list_descendants(self.process.pid)
        self._known.update(tree)
        if self.marker:
            send_group(self.process.pid, signal.SIGTERM)
        signal_processes(tree, signal.SIGTERM)
        # A command over its limits could use much more during a grace period.
        self._kill_at = now if reason in ("flood", "limits", "worker") else now + self.stop.grace_seconds

    def _kill(self, now: float) -> None:
        self._kill_at = float("inf")
        # Seconds after SIGKILL until a process counts as stuck in the kernel.
        self._give_up_at = now + 5.0
        self._known.update(list_descendants(self.process.pid))
        send_group(self.process.pid, signal.SIGKILL)

    def _end(self) -> None:
        """Kill what the exited process left behind and read its pipes to the end."""
        self._ended = True
        if self.record:
            self.record.end()
        self._kill_at = float("inf")
        # Until it is reaped, its number can't be reused by another group.
        send_group(self.process.pid, signal.SIGKILL)
        self.seconds = time.monotonic() - self._began
        if self.marker:
            self.left_behind = end_left_behind(self.process.pid, self.marker, self._known)
        self.exit_code = self.process.wait()
        if self.kept_end is not None:
            self.kept_end.close()
            self.kept_end = None
        # Seconds to keep reading the pipes after the process and its leftovers have ended.
        self._give_up_at = time.monotonic() + 1.0
        if self._pidfd >= 0:
            self._waiting.remove(self._pidfd)

    def _has_finished(self) -> bool:
        if time.monotonic() >= self._give_up_at:
            return True
        return self._ended and not self._waiting

    def _close(self) -> None:
        _worker_memory.forget(self.process.pid)
        if not self._ended:
            # Stuck, or an exception was raised: leave nothing running.
            self._known.update(list_descendants(self.process.pid))
            send_group(self.process.pid, signal.SIGKILL)
            signal_processes(self._known, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.exit_code = self.process.wait(timeout=1)
            self.seconds = time.monotonic() - self._began
        if self._pidfd >= 0:
            os.close(self._pidfd)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
