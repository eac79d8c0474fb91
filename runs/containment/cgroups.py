"""Limits of a whole trial by the kernel: a control group each, where the system has delegated one to the worker.

systemd delegates with `Delegate=yes` and marks the folder; then it is the worker's to divide. Without delegation, what a
trial uses is counted a few times a second instead.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CONTROLLERS = ("memory", "pids")
TASKS_OF_A_PROCESS = 8
"""The kernel counts threads; the number of processes is still looked after by the worker."""
OWN = "evalhub"
"""Name of the group below the delegated one that holds the worker itself."""
_REMOVAL_SECONDS = 2.0


@dataclass(frozen=True)
class GroupLimits:
    """Where the group of a command is made, and what it allows; None is unlimited."""

    parent: Path
    memory: int | None = None
    processes: int | None = None


@dataclass(frozen=True)
class Group:
    """The control group of one command."""

    folder: Path

    def add(self, pid: int) -> None:
        """Put a process, and what it will start, into the group. Raises `OSError`."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has ended a process for its limit."""
        with suppress(OSError):
            events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
            return int(events.get("oom_kill", 0)) > 0
        return False


@contextmanager
def group(limits: GroupLimits) -> Iterator[Group]:
    """Make a group below a delegated one, and end what is left in it. Raises `OSError`."""
    folder = limits.parent / f"trial-{secrets.token_hex(8)}"
    folder.mkdir()
    try:
        if limits.memory is not None:
            (folder / "memory.max").write_text(str(limits.memory))
            # All of it or nothing: half a trial would say something wrong.
            (folder / "memory.oom.group").write_text("1")
            with suppress(FileNotFoundError):  # a kernel without swap
                (folder / "memory.swap.max").write_text("0")
        if limits.processes is not None:
            (folder / "pids.max").write_text(str(limits.processes * TASKS_OF_A_PROCESS))
        yield Group(folder)
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
            # Its processes are still on their way out.
            if time.monotonic() > until:
                return
            time.sleep(0.005)


@cache
def delegated() -> Path | None:
    """Return the group that trials get groups in, made ready once a process; None where none is delegated."""
    own = own_group(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if own is not None and own.name == OWN:
        # Another process has made it ready before this one began.
        own = own.parent
    if own is None or not is_delegated(own):
        return None
    try:
        _make_ready(own)
    except OSError:
        return None
    return own


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
    """Whether systemd has left a group to its processes, with the controllers that are needed."""
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
    """Move the group's own processes into one below it: a group that divides holds none itself."""
    below = folder / OWN
    below.mkdir(exist_ok=True)
    for pid in (folder / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (below / "cgroup.procs").write_text(pid)
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
