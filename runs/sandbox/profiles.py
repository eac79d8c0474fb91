"""Resource limits: generous for agents, tight for a test file's commands."""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from runs.errors import ProviderError

_MB = 1 << 20
AGENT_PROCESSES = 512
AGENT_MEMORY_MB = 4096


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of a command and its children; None is unlimited."""

    rss_bytes: int | None = None
    processes: int | None = None
    disk_bytes: int | None = None
    disk: tuple[Path, ...] = ()
    """The directories whose size together `disk_bytes` bounds."""
    worker_bytes: int | None = None
    """Memory of the worker and all its commands."""

    @property
    def watched(self) -> bool:
        """Whether the watchdog has to poll."""
        every = (self.rss_bytes, self.processes, self.disk_bytes, self.worker_bytes)
        return any(limit is not None for limit in every)


UNLIMITED = ProcessLimits()


class TargetLimits(Protocol):
    """Limits that a target requests; None uses the worker's."""

    @property
    def max_processes(self) -> int | None: ...

    @property
    def max_memory_mb(self) -> int | None: ...

    @property
    def egress(self) -> Literal["none", "internet", "full"] | None: ...


@dataclass(frozen=True)
class Profile:
    """Limits of one kind of command; None is unlimited."""

    network: bool
    nested: bool
    """Whether it may create namespaces: agents sandbox what they run."""
    fresh_home: bool
    """Whether each command has an empty home of its own, which no earlier command wrote to."""
    file_bytes: int
    open_files: int
    tmp_bytes: int
    data_bytes: int | None = None
    """Bounds the data segment, not the address space: V8, Go and the JVM reserve much more than they use."""
    threads: int | None = None
    processes: int | None = None
    rss_bytes: int | None = None
    disk_bytes: int | None = None

    def limits(self, disk: tuple[Path, ...], worker_bytes: int | None = None) -> ProcessLimits:
        """Return the limits that the watchdog enforces; `disk` are the folders that commands write to."""
        return ProcessLimits(self.rss_bytes, self.processes, self.disk_bytes, disk, worker_bytes)

    def resource_limits(self, *, own_user: bool) -> dict[int, int]:
        """Return the limits of single processes, by their number in `resource`.

        Linux counts threads per user, so that limit needs a user namespace.
        """
        limits = {
            resource.RLIMIT_FSIZE: self.file_bytes,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_CORE: 0,
        }
        if self.data_bytes is not None:
            limits[resource.RLIMIT_DATA] = self.data_bytes
        if self.threads is not None and own_user:
            limits[resource.RLIMIT_NPROC] = self.threads
        return limits


AGENT = Profile(
    network=True,
    nested=True,
    fresh_home=False,
    file_bytes=4096 * _MB,
    open_files=4096,
    tmp_bytes=2048 * _MB,
    processes=AGENT_PROCESSES,
    rss_bytes=AGENT_MEMORY_MB * _MB,
    disk_bytes=8192 * _MB,
)
"""Setup commands and agents."""


@dataclass(frozen=True)
class Caps:
    """Upper bounds for targets' limits, set by the operator (`EVALHUB_MAX_PROCESSES` and the like)."""

    processes: int = AGENT_PROCESSES
    memory_mb: int = AGENT_MEMORY_MB


def limit_profile(profile: Profile, processes: int | None, memory_mb: int | None, caps: Caps) -> Profile:
    """Return the profile with a target's limits, or the defaults within the caps.

    Raises `ProviderError` (kind `configuration`) for more than the caps.
    """
    _refuse_above("max_processes", processes, caps.processes, "EVALHUB_MAX_PROCESSES")
    _refuse_above("max_memory_mb", memory_mb, caps.memory_mb, "EVALHUB_MAX_MEMORY_MB")
    return replace(
        profile,
        processes=processes or min(AGENT_PROCESSES, caps.processes),
        rss_bytes=(memory_mb or min(AGENT_MEMORY_MB, caps.memory_mb)) * _MB,
    )


def _refuse_above(name: str, asked: int | None, cap: int, setting: str) -> None:
    if asked is not None and asked > cap:
        raise ProviderError(
            f"The target asks for {name} {asked:,}, and this worker allows {cap:,}. "
            f"Lower it, or ask the operator to raise {setting}.",
            kind="configuration",
        )


COMMAND = Profile(
    network=False,
    nested=False,
    fresh_home=True,
    file_bytes=64 * _MB,
    open_files=256,
    tmp_bytes=64 * _MB,
    data_bytes=2048 * _MB,
    threads=128,
    processes=144,
    rss_bytes=1024 * _MB,
    disk_bytes=1024 * _MB,
)
"""Gates, scripts, judges in code, version and health commands."""
