"""How much of a machine a command may use: agents a lot, the commands of a test file little."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

_MB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """How much a command and everything it starts may use; None is unlimited."""

    rss_bytes: int | None = None
    processes: int | None = None
    disk_bytes: int | None = None
    disk: Path | None = None
    """The directory whose size `disk_bytes` bounds."""

    @property
    def watched(self) -> bool:
        """Whether anybody has to look."""
        return any(limit is not None for limit in (self.rss_bytes, self.processes, self.disk_bytes))


UNLIMITED = Limits()


@dataclass(frozen=True)
class Profile:
    """Limits of one kind of command; None is unlimited."""

    network: bool
    nested: bool
    """Whether it may make namespaces of its own: agents sandbox what they run."""
    file_bytes: int
    open_files: int
    tmp_bytes: int
    data_bytes: int | None = None
    """Bounds the data segment, not the address space: V8, Go and the JVM reserve much more than they use."""
    processes: int | None = None
    rss_bytes: int | None = None
    disk_bytes: int | None = None

    def limits(self, workspace: Path) -> Limits:
        """What is watched while the command runs."""
        # A process more than the kernel's limit, which does nothing for root; then the watchdog ends the tree.
        processes = None if self.processes is None else self.processes + 16
        return Limits(self.rss_bytes, processes, self.disk_bytes, workspace)

    def resource_limits(self, *, own_user: bool) -> dict[int, int]:
        """Return the limits of single processes, by their number in `resource`.

        The number of processes is counted for a user, so it is only set where a user namespace counts apart.
        """
        limits = {
            resource.RLIMIT_FSIZE: self.file_bytes,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_CORE: 0,
        }
        if self.data_bytes is not None:
            limits[resource.RLIMIT_DATA] = self.data_bytes
        if self.processes is not None and own_user:
            limits[resource.RLIMIT_NPROC] = self.processes
        return limits


AGENT = Profile(
    network=True,
    nested=True,
    file_bytes=4096 * _MB,
    open_files=4096,
    tmp_bytes=2048 * _MB,
    disk_bytes=8192 * _MB,
)
"""Setup commands and agents."""

COMMAND = Profile(
    network=False,
    nested=False,
    file_bytes=64 * _MB,
    open_files=256,
    tmp_bytes=64 * _MB,
    data_bytes=2048 * _MB,
    processes=128,
    rss_bytes=1024 * _MB,
    disk_bytes=1024 * _MB,
)
"""Gates, scripts, judges in code, version and health commands."""
