"""Lend user namespaces that limit what a command takes of the worker's user.

Linux counts inotify instances and namespaces per user, so one trial could take all that the worker's user may have. A
namespace has limits of its own for all that runs in it and below; a command has no rights over them. Making one takes
milliseconds, so later commands use it again.
"""

from __future__ import annotations

import os
import select
import stat
import subprocess
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from runs.sandbox.helper_processes import HELPER_ENV

INOTIFY_INSTANCES = 16
NAMESPACES = 8
"""User namespaces below that of a command that may create some."""
_PATIENCE = 20.0
# As the namespace's owner, with the capabilities that only its first process has.
_HOLD = ("unshare", "--user", "--map-current-user", "--keep-caps", "--", "/bin/sh", "-c")

MOST_FREE = 8
"""Namespaces that are kept for later commands, of each kind."""

_free: dict[int, deque[tuple[float, int]]] = defaultdict(deque)
"""Namespaces that no command uses, by how many may be below: since when, and their descriptors."""


def setting_limits(namespaces: int) -> str:
    """Return a shell's commands that set the limits of the user namespace that they run in."""
    return (
        f"echo {INOTIFY_INSTANCES} > /proc/sys/user/max_inotify_instances && "
        f"echo {namespaces} > /proc/sys/user/max_user_namespaces"
    )


@contextmanager
def limited_namespace(program: str, namespaces: int) -> Iterator[int | None]:
    """Lend a namespace's descriptor for one command of bubblewrap; None where the kernel or bubblewrap doesn't let it.

    `namespaces` is how many user namespaces the command and its children may create.
    """
    descriptor = None
    if not namespaces_problem(program):
        with suppress(OSError):
            descriptor = _take(namespaces)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            free = _free[namespaces]
            free.append((time.monotonic(), descriptor))
            if len(free) > MOST_FREE:
                with suppress(IndexError):
                    os.close(free.popleft()[1])


@cache
def namespaces_problem(program: str) -> str:
    """Return why bubblewrap's commands can't be limited here, without a full stop; empty if they can."""
    try:
        if Path(program).stat().st_mode & stat.S_ISUID:
            return "bubblewrap is setuid"
        _free[NAMESPACES].append((0.0, _make(NAMESPACES)))
    except OSError as error:
        return f"a namespace for them can't be made: {error}".rstrip(".")
    return ""


def _take(namespaces: int) -> int:
    try:
        # Atomic, because commands start in several threads.
        since, descriptor = _free[namespaces].popleft()
    except IndexError:
        return _make(namespaces)
    # The kernel takes back what a killed command had in a namespace a moment later.
    if time.monotonic() - since >= 0.5:
        return descriptor
    _free[namespaces].appendleft((since, descriptor))
    return _make(namespaces)


def _make(namespaces: int) -> int:
    """Return the descriptor of a new namespace, which lives as long as that. Raises `OSError`."""
    script = f"{setting_limits(namespaces)} && echo ready && read -r word"
    holder = subprocess.Popen(
        [*_HOLD, script],
        cwd="/",
        env=HELPER_ENV,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with holder:
        try:
            return _open_namespace(holder)
        finally:
            holder.kill()


def _open_namespace(holder: subprocess.Popen[bytes]) -> int:
    answer = b""
    if holder.stdout and select.select([holder.stdout], [], [], _PATIENCE)[0]:
        answer = holder.stdout.readline()
    if answer != b"ready\n":
        raise OSError(answer.decode("utf-8", "replace").strip() or "no answer")
    return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
