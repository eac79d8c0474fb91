"""Finds the processes that a command started, also those that left its group, and ends them.

A process that leaves the session, its parents and its environment behind escapes here; the pid namespace of the
sandbox holds such a one.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock

import psutil

MARKER = "EVALHUB_PROCESS"
"""Name of the variable by which the descendants of a command are recognised."""
SHARED_SECONDS = 0.1
"""Commands that are watched at the same time share a look at the machine."""
LONG_SECONDS = 5.0
"""After so long the number of an older process may have become a descendant's."""
_LOOKS = 3
_KERNEL_SESSION = 0


@dataclass(frozen=True)
class Process:
    """One living process; psutil tells it from a later one with the same number."""

    process: psutil.Process
    rss_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Mark:
    """What the descendants of one command are recognised by."""

    value: str
    before: frozenset[int]
    """The processes that were there before the command."""

    @classmethod
    def new(cls) -> Mark:
        """Return a mark for a command that is started next."""
        return cls(secrets.token_hex(8), frozenset(psutil.pids()))


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


def marked(root: int, mark: Mark, *, but: Container[int] = ()) -> list[Process]:
    """The living processes of a command that were started after it and are not its root, whatever their parents."""
    fresh = [pid for pid in psutil.pids() if pid != root and pid not in mark.before and pid not in but]
    return [process for pid in fresh if (process := _belonging(pid, root, mark))]


def left_behind(root: int, mark: Mark) -> list[Process]:
    """The living processes that a command with this mark started and that are not its root.

    Looked for again while there are new processes: one that forks and ends in between hands over to one that the
    first look had not listed.
    """
    looked_at: frozenset[int] = frozenset()
    for _ in range(_LOOKS):
        listed = frozenset(psutil.pids())
        if listed <= looked_at:
            break
        if found := marked(root, mark, but=looked_at):
            return found
        looked_at = listed
    return []


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


def end_left_behind(root: int, mark: Mark, known: Iterable[Process] = (), *, seconds: float) -> int:
    """Kill what a command left behind and return how many processes that were.

    `known` are descendants seen while the command ran, which took `seconds`. Looked for again after each round, since
    what is killed may have started another meanwhile; gives up after a second.
    """
    if seconds > LONG_SECONDS:
        mark = replace(mark, before=frozenset())
    ended: set[Process] = set()
    known = list(known)
    give_up = time.monotonic() + 1.0
    while found := [*filter(_lives, known), *left_behind(root, mark)]:
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


def _belonging(pid: int, root: int, mark: Mark) -> Process | None:
    try:
        session = os.getsid(pid)
        # A session is inherited or new, so an older one is a stranger's.
        if session == _KERNEL_SESSION or session in mark.before:
            return None
        found = psutil.Process(pid)
        process = Process(found, found.memory_info().rss)
        ours = session == root or any(value == mark.value for value in _markers(found))
    except (OSError, psutil.Error):
        return None
    return process if ours and _lives(process) else None


def _markers(process: psutil.Process) -> Iterator[str | None]:
    """Yield the marker of a process; its variables are empty for a moment while it executes another program."""
    for _ in range(_LOOKS):
        if variables := process.environ():
            yield variables.get(MARKER)
            return
        time.sleep(0.001)
