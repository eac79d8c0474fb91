"""Finds the processes that a command started, also those that left its group, and ends them.

Linux shows them under /proc; elsewhere only the process group is known. A process that leaves the
session, its parents and its environment behind escapes here: the pid namespace of the sandbox is
what holds such a one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

MARKER = "EVALHUB_PROCESS"
"""Name of the variable by which the descendants of a command are recognised."""

PROC = Path("/proc")
_NEAR = 512
_LOOKS = 3
_KERNEL = 2
"""Parent of the kernel's threads, which have no variables."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOADAVG = "/proc/loadavg"
_held: set[int] = set()


class Process(NamedTuple):
    """One living process; `started` tells two with the same pid apart."""

    pid: int
    parent: int
    session: int
    started: int
    rss_bytes: int


def read_process(pid: int) -> Process | None:
    """Return a process that is alive, None where it is gone or only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    if fields[0] in b"ZXx":
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), int(fields[21]) * _PAGE)


def all_processes() -> Iterator[Process]:
    """Every living process that /proc shows."""
    for pid in _listed_pids():
        if process := read_process(pid):
            yield process


def descendants(root: int) -> list[Process]:
    """The living descendants of a process, without itself."""
    children: dict[int, list[Process]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.pid for process in below]
    return found


def hold(root: int) -> None:
    """Take note of a command of this process, the leader of its session, so that others need not ask whose it is."""
    _held.add(root)


def release(root: int) -> None:
    """Forget a command before it is reaped: its number may be a stranger's afterwards."""
    _held.discard(root)


def left_behind(root: int, marker: str) -> list[Process]:
    """The living processes that a command with this marker started and that are not its root.

    Looked for again among those that were started meanwhile: one that forks and ends in between hands over to
    one that the first look had not listed.
    """
    wanted = f"{MARKER}={marker}".encode()
    seen = root
    for _ in range(_LOOKS):
        newest = _newest_pid()
        if newest == seen:
            break
        near = seen < newest <= root + _NEAR
        # After a wrap of the numbers all are candidates, whatever their session's number.
        pids = _near_strangers(root, seen, newest) if near else _far_pids(root, newest)
        if found := [process for pid in pids if (process := _belonging(pid, root, wanted))]:
            return found
        seen = newest if near else seen
    return []


def send(processes: Iterable[Process], signal_number: int) -> None:
    """Signal the processes that are still the ones that were seen."""
    for process in processes:
        now = read_process(process.pid)
        if now is None or now.started != process.started:
            continue
        try:
            os.kill(process.pid, signal_number)
        except ProcessLookupError:
            continue


def send_group(group: int, signal_number: int) -> None:
    """Signal a process group; one that is gone is no error."""
    try:
        os.killpg(group, signal_number)
    except (ProcessLookupError, PermissionError):
        # macOS answers "not permitted" for a group that holds only zombies.
        return


def end_left_behind(root: int, marker: str, known: Iterable[Process] = ()) -> int:
    """Kill what a command left behind and return how many processes that were.

    `known` are descendants seen while the command ran. Looked for again after each round, since what
    is killed may have started another meanwhile; gives up after a second.
    """
    ended: set[Process] = set()
    known = list(known)
    give_up = time.monotonic() + 1.0
    while found := _alive(known) + left_behind(root, marker):
        ended.update(process._replace(parent=0, rss_bytes=0) for process in found)
        send(found, signal.SIGKILL)
        if time.monotonic() > give_up:
            break
        time.sleep(0.002)
    return len(ended)


def _alive(processes: Iterable[Process]) -> list[Process]:
    return [
        process
        for process in processes
        if (now := read_process(process.pid)) and now.started == process.started
    ]


def _belonging(pid: int, root: int, wanted: bytes) -> Process | None:
    process = read_process(pid)
    if process is None or process.pid == root:
        return None
    if process.session == root:
        return process
    return process if wanted in _environment(process) else None


def _environment(process: Process) -> list[bytes]:
    """Return the variables of a process; they are empty for a moment while it executes another program."""
    for _ in range(_LOOKS):
        try:
            found = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            return []
        if found or process.parent == _KERNEL:
            return found.split(b"\0")
        time.sleep(0.001)
    return []


def _listed_pids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()] if PROC.is_dir() else []  # noqa: PTH208  # a path object for each process costs more than the rest


def _near_strangers(root: int, seen: int, newest: int) -> Iterator[int]:
    """Pids given out after `seen` that may belong to `root`: mostly a handful, or none.

    Asking for a session costs a hundredth of reading a process. No descendant is in a session that began before
    its root did, or that another command of this process leads: a session is inherited or new, never joined.
    """
    for pid in range(seen + 1, newest + 1):
        try:
            session = os.getsid(pid)
        except OSError:
            continue
        if session == root or (session > root and session not in _held):
            yield pid


def _far_pids(root: int, newest: int) -> list[int]:
    return [pid for pid in _listed_pids() if pid > root or newest < root]


def _newest_pid() -> int:
    try:
        # Without a file object, which asks the system seven times more for each trial.
        descriptor = os.open(_LOADAVG, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(descriptor, 256).split()[-1])
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(descriptor)
