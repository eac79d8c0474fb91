"""Find and kill a command's processes, including those that left its group.

A process that leaves its session, parents and environment escapes here; a sandbox's pid namespace contains it.
"""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

import psutil

MARKER = "EVALHUB_PROCESS"
"""Environment variable that marks a command's descendants."""
SHARED_SECONDS = 0.1
"""Seconds that concurrently watched commands share one process listing."""
_LOOKS = 3


@dataclass(frozen=True)
class LiveProcess:
    """A live process; psutil detects a reused process id."""

    process: psutil.Process
    rss_bytes: int = field(default=0, compare=False)


class _Table:
    """This machine's processes by parent."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read_at = float("-inf")
        self._children: dict[int, list[LiveProcess]] = {}

    def children(self, max_age: float) -> dict[int, list[LiveProcess]]:
        with self._lock:
            if time.monotonic() - self._read_at > max_age:
                children: dict[int, list[LiveProcess]] = defaultdict(list)
                for process in psutil.process_iter(["ppid", "memory_info", "status"]):
                    info = process.info
                    if info["status"] != psutil.STATUS_ZOMBIE:
                        memory = info["memory_info"]
                        children[info["ppid"]].append(LiveProcess(process, memory.rss if memory else 0))
                self._children = children
                self._read_at = time.monotonic()
            return self._children


_table = _Table()


def descendants(root: int, *, max_age: float = 0.0) -> list[LiveProcess]:
    """Return a process's live descendants from a listing of at most `max_age` seconds ago."""
    children = _table.children(max_age)
    processes: list[LiveProcess] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        processes += below
        waiting += [each.process.pid for each in below]
    return processes


def read_process(pid: int) -> LiveProcess | None:
    """Return a live process, None if it is gone or a zombie."""
    try:
        process = psutil.Process(pid)
        live = LiveProcess(process, process.memory_info().rss)
    except psutil.Error:
        return None
    return live if _is_alive(live) else None


def marked_processes(root: int, marker: str) -> list[LiveProcess]:
    """Return a command's marked live processes without its root."""
    return _find_marked(root, marker)[0]


def left_behind(root: int, marker: str) -> list[LiveProcess]:
    """Return the live processes with a command's marker, without its root.

    Searches again if a process exited during the search: it may have started an unlisted one.
    """
    for _ in range(_LOOKS):
        processes, complete = _find_marked(root, marker)
        if processes or complete:
            return processes
    return []


def _find_marked(root: int, marker: str) -> tuple[list[LiveProcess], bool]:
    """Return a command's processes, and whether none exited during the search."""
    marked: list[LiveProcess] = []
    complete = True
    newest = _newest_pid()
    # Up to so many new process ids are probed one by one; beyond that, processes are listed.
    near = root <= newest <= root + 512
    # Possible descendants: every process if the ids wrapped.
    for pid in (
        range(root + 1, newest + 1) if near else [pid for pid in psutil.pids() if pid > root or newest < root]
    ):
        try:
            session = os.getsid(pid)
            # A session is inherited or new; the kernel's own processes are in none.
            if (root <= session <= newest) if near else session:
                marked += _with_marker(pid, root, session, marker)
        except (ProcessLookupError, psutil.NoSuchProcess):
            complete = complete and near
        except (OSError, psutil.Error):
            # Another user's.
            continue
    return marked, complete and newest == _newest_pid()


def _newest_pid() -> int:
    """Return the newest process id; ten times as fast as a listing."""
    try:
        file = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(file, 256).split()[-1])
    finally:
        os.close(file)


def signal_processes(processes: Iterable[LiveProcess], signal_number: int) -> None:
    """Signal the processes whose ids were not reused."""
    for live in processes:
        with suppress(psutil.Error):
            live.process.send_signal(signal_number)


def send_group(group: int, signal_number: int) -> None:
    """Signal a process group, if it still exists."""
    # macOS answers "not permitted" for a group that holds only zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal_number)


def end_left_behind(root: int, marker: str, known: Iterable[LiveProcess] = ()) -> int:
    """Kill a command's leftover processes and return their number.

    `known` are descendants seen while the command ran. Repeats for up to a second, because a killed process may have started another.
    """
    ended: set[LiveProcess] = set()
    known = list(known)
    give_up = time.monotonic() + 1.0
    while left := [*filter(_is_alive, known), *left_behind(root, marker)]:
        ended.update(left)
        signal_processes(left, signal.SIGKILL)
        if time.monotonic() > give_up:
            break
        time.sleep(0.002)
    return len(ended)


def _is_alive(process: LiveProcess) -> bool:
    try:
        return process.process.is_running() and process.process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _with_marker(pid: int, root: int, session: int, marker: str) -> Iterator[LiveProcess]:
    """Yield a process if it has a command's marker; a thread's id is none. Raises `psutil.Error`."""
    candidate = psutil.Process(pid)
    if session == root or any(value == marker for value in _markers(candidate)):
        process = LiveProcess(candidate, candidate.memory_info().rss)
        if psutil.pid_exists(pid) and _is_alive(process):
            yield process


def _markers(process: psutil.Process) -> Iterator[str | None]:
    """Yield a process's marker; its environment is empty for a moment during exec."""
    for _ in range(_LOOKS):
        if variables := process.environ():
            yield variables.get(MARKER)
            return
        time.sleep(0.001)
