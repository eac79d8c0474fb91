"""Limit a whole trial with a control group, if the system has delegated one to the worker.

systemd delegates with `Delegate=yes` and marks the folder. Without delegation, the watchdog polls a trial's usage a few times a second.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

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
