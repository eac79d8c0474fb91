"""Finds the processes that a command started, also those that left its group, and ends them.

A process that leaves the session, its parents and its environment behind escapes here; the pid namespace of the
sandbox holds such a one.
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
"""Name of the variable by which the descendants of a command are recognised."""
SHARED_SECONDS = 0.1
"""Commands that are watched at the same time share a look at the machine."""
NEAR = 512
"""Of so many processes that began after a command, each is asked; of more, those that are listed."""
_LOOKS = 3


@dataclass(frozen=True)
class Process:
    """One living process; psutil tells it from a later one with the same number."""

    process: psutil.Process
    rss_bytes: int = field(default=0, compare=False)


class _Table:
    """The processes of this machine by their parents."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read_at = float("-inf")
        self._children: dict[int, list[Process]] = {}

    def children(self, max_age: float) -> dict[int, list[Process]]:
        with self._lock:
            if time.monotonic() - self._read_at > max_age:
                self._children = _read_all()
                self._read_at = time.monotonic()
            return self._children


_table = _Table()


def _read_all() -> dict[int, list[Process]]:
    children: dict[int, list[Process]] = defaultdict(list)
    for process in psutil.process_iter(["ppid", "memory_info", "status"]):
        info = process.info
        if info["status"] != psutil.STATUS_ZOMBIE:
            memory = info["memory_info"]
            children[info["ppid"]].append(Process(process, memory.rss if memory else 0))
    return children


def descendants(root: int, *, max_age: float = 0.0) -> list[Process]:
    """The living descendants of a process, without itself, as of at most `max_age` seconds ago."""
    children = _table.children(max_age)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [each.process.pid for each in below]
    return found


def read_process(pid: int) -> Process | None:
    """Return a process that is alive, None where it is gone or only waits to be reaped."""
    try:
        process = psutil.Process(pid)
        found = Process(process, process.memory_info().rss)
    except psutil.Error:
        return None
    return found if _lives(found) else None


def marked(root: int, marker: str) -> list[Process]:
    """The living processes of a command that are not its root, whatever their parents."""
    return _look_for(root, marker)[0]


def left_behind(root: int, marker: str) -> list[Process]:
    """The living processes that a command with this marker started and that are not its root.

    Looked for again where one was gone before it was asked: it may have handed over to one that was not listed.
    """
    for _ in range(_LOOKS):
        found, complete = _look_for(root, marker)
        if found or complete:
            return found
    return []


def _look_for(root: int, marker: str) -> tuple[list[Process], bool]:
    """Return a command's processes, and whether none was gone before it was asked whose it is."""
    found: list[Process] = []
    complete = True
    newest = _newest_pid()
    near = root <= newest <= root + NEAR
    for pid in range(root + 1, newest + 1) if near else _listed(root, newest):
        try:
            session = os.getsid(pid)
            # A session is inherited or new; the kernel's own processes are in none.
            if (root <= session <= newest) if near else session:
                found += _belonging(pid, root, session, marker)
        except (ProcessLookupError, psutil.NoSuchProcess):
            complete = complete and near
        except (OSError, psutil.Error):
            # Another user's.
            continue
    return found, complete and newest == _newest_pid()


def _listed(root: int, newest: int) -> list[int]:
    """Return what may be a descendant: after a wrap of the numbers, every process."""
    return [pid for pid in psutil.pids() if pid > root or newest < root]


def _newest_pid() -> int:
    """Return the number that was given out last; asking for it costs a tenth of a listing."""
    try:
        file = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(file, 256).split()[-1])
    finally:
        os.close(file)


def send(processes: Iterable[Process], signal_number: int) -> None:
    """Signal the processes that are still the ones that were seen."""
    for each in processes:
        with suppress(psutil.Error):
            each.process.send_signal(signal_number)


def send_group(group: int, signal_number: int) -> None:
    """Signal a process group; one that is gone is no error."""
    # macOS answers "not permitted" for a group that holds only zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal_number)


def end_left_behind(root: int, marker: str, known: Iterable[Process] = ()) -> int:
    """Kill what a command left behind and return how many processes that were.

    `known` are descendants seen while the command ran. Looked for again after each round, since what
    is killed may have started another meanwhile; gives up after a second.
    """
    ended: set[Process] = set()
    known = list(known)
    give_up = time.monotonic() + 1.0
    while found := [*filter(_lives, known), *left_behind(root, marker)]:
        ended.update(found)
        send(found, signal.SIGKILL)
        if time.monotonic() > give_up:
            break
        time.sleep(0.002)
    return len(ended)


def _lives(process: Process) -> bool:
    try:
        return process.process.is_running() and process.process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _belonging(pid: int, root: int, session: int, marker: str) -> Iterator[Process]:
    """Yield a process where it is one of a command. Raises `psutil.Error`."""
    found = psutil.Process(pid)
    if session == root or any(value == marker for value in _markers(found)):
        process = Process(found, found.memory_info().rss)
        if _lives(process):
            yield process


def _markers(process: psutil.Process) -> Iterator[str | None]:
    """Yield the marker of a process; its variables are empty for a moment while it executes another program."""
    for _ in range(_LOOKS):
        if variables := process.environ():
            yield variables.get(MARKER)
            return
        time.sleep(0.001)
