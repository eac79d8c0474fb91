"""Find and kill a command's processes, also those that left its group, and limit a trial's by a cgroup.

A process that leaves its session, parents and environment escapes here; a sandbox's pid namespace contains it.
systemd delegates control groups with `Delegate=yes` and marks the folder. Without delegation, the watchdog polls a
trial's usage a few times a second.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import psutil

CONTROLLERS = ("memory", "pids")
OWN = "evalhub"
"""Name of the worker's own group below the delegated one."""
_REMOVAL_SECONDS = 2.0


@dataclass(frozen=True)
class GroupLimits:
    """Parent and limits of a command's group; None is unlimited."""

    parent: Path
    memory: int | None = None
    processes: int | None = None


@dataclass(frozen=True)
class ControlGroup:
    """The control group of one command."""

    folder: Path

    def add(self, pid: int) -> None:
        """Add a process, and the children it starts, to the group. Raises `OSError`."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process at the memory limit."""
        with suppress(OSError):
            events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
            return int(events.get("oom_kill", 0)) > 0
        return False


@contextmanager
def group(limits: GroupLimits) -> Iterator[ControlGroup]:
    """Create a group below a delegated one; kill leftover processes at exit. Raises `OSError`."""
    folder = limits.parent / f"trial-{secrets.token_hex(8)}"
    folder.mkdir()
    try:
        if limits.memory is not None:
            (folder / "memory.max").write_text(str(limits.memory))
            # Kill the whole group: half a trial would give misleading results.
            (folder / "memory.oom.group").write_text("1")
            with suppress(FileNotFoundError):  # a kernel without swap
                (folder / "memory.swap.max").write_text("0")
        if limits.processes is not None:
            # The kernel counts threads; the worker still counts processes.
            (folder / "pids.max").write_text(str(limits.processes * 8))
        yield ControlGroup(folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    with suppress(OSError):  # before Linux 5.14
        (folder / "cgroup.kill").write_text("1")
    until = time.monotonic() + _REMOVAL_SECONDS
    while True:
        try:
            folder.rmdir()
            return
        except OSError:
            # Its processes are still exiting.
            if time.monotonic() > until:
                return
            time.sleep(0.005)


def find_delegated_group() -> Path | None:
    """Return the delegated parent group, prepared if it is not yet; None without delegation."""
    current = own_group(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if current is not None and current.name == OWN:
        # Another process prepared it earlier.
        current = current.parent
    if current is None or not is_delegated(current):
        return None
    try:
        _make_ready(current)
    except OSError:
        return None
    return current


def own_group(groups: str, mounts: str) -> Path | None:
    """Return the folder of this process's group in the unified hierarchy, None without one."""
    paths = [line.removeprefix("0::") for line in groups.splitlines() if line.startswith("0::")]
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[:1] == ["cgroup2"] and paths:
            root, place = before.split()[3:5]
            inside = os.path.relpath(paths[0], root)
            return Path(place) if inside == "." else Path(place, inside)
    return None


def is_delegated(folder: Path) -> bool:
    """Return whether systemd delegated a group with the required controllers."""
    marks = []
    for name in ("user.delegate", "trusted.delegate"):
        with suppress(OSError):
            marks.append(os.getxattr(folder, name))
    try:
        known = (folder / "cgroup.controllers").read_text().split()
    except OSError:
        return False
    writable = os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)
    return b"1" in marks and writable and set(CONTROLLERS) <= set(known)


def _make_ready(folder: Path) -> None:
    """Move the group's processes into a child: a group with children can't contain processes."""
    below = folder / OWN
    below.mkdir(exist_ok=True)
    for pid in (folder / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (below / "cgroup.procs").write_text(pid)
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))


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


def list_descendants(root: int, *, max_age: float = 0.0) -> list[LiveProcess]:
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
    # Up to this many new process ids are probed one by one; beyond that, processes are listed.
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
