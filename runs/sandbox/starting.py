"""Start a command directly, in bubblewrap, or through a starter that limits itself first.

A helper (bubblewrap, the starter) gets a fixed environment and starts in `/`. The command's variables reach it
through a file descriptor, so they affect nothing outside the sandbox and appear in no argument list.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from runs.sandbox import landlock
from runs.sandbox.call_filter import call_filter
from runs.sandbox.egress import Allowed
from runs.sandbox.filtered_network import NAMESPACES, FilteredNetwork, filtered_network, limited_namespace
from runs.sandbox.helper_processes import HELPER_ENV, memory_file
from runs.sandbox.process_tree import ControlGroup, GroupLimits, group
from runs.sandbox.recording.record import ToolRecord

OOM_SCORE = 500
"""When memory runs out, the kernel kills commands before the worker."""


@dataclass(frozen=True)
class Bubblewrap:
    """Namespaces around a command."""

    program: str
    options: tuple[str, ...]
    """All but the variables and the user namespace."""
    nested: bool = True
    """Whether the command may create namespaces."""
    limits: Mapping[int, int] = field(default_factory=dict)
    """Resource limits by their number in `resource`."""
    allowed: tuple[Allowed, ...] | None = None
    """Allowed egress of a filtered network; None for no such network."""
    filters_sockets: bool = False
    """Whether to refuse the kinds of sockets that a network namespace doesn't contain."""
    group: GroupLimits | None = None


@dataclass(frozen=True)
class Starter:
    """Resource limits, and Landlock's rules where there are any, around a command."""

    limits: Mapping[int, int]
    rules: Mapping[str, Any] | None = None
    group: GroupLimits | None = None


@dataclass(frozen=True)
class Spawn:
    """A command to start; `cwd` is a host path, `env` the complete environment."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    through: Bubblewrap | Starter | None = None

    @property
    def contained(self) -> bool:
        """Return whether a pid namespace kills everything that the command starts."""
        return isinstance(self.through, Bubblewrap)


@dataclass(frozen=True)
class Started:
    """A running command."""

    process: subprocess.Popen[bytes]
    group: ControlGroup | None = None

    @property
    def out_of_memory(self) -> bool:
        """Return whether the kernel killed it at its memory limit."""
        return self.group is not None and self.group.out_of_memory


@dataclass(frozen=True)
class _Place:
    """The namespaces that a sandbox is started in; None for the worker's own."""

    network: FilteredNetwork | None
    """With a user namespace of its own."""
    user: int | None
    """A descriptor."""


_Launch = tuple[tuple[str, ...], tuple[int, ...]]
"""Words before a command, and the descriptors that they need."""


@contextmanager
def start_command(spawn: Spawn, record: ToolRecord | None = None, **pipes: Any) -> Iterator[Started]:
    """Start a command with the pipes of `subprocess.Popen`, and what records its executions of the tool.

    Raises `OSError` or `ValueError` if it can't start.
    """
    through = spawn.through
    if through is None:
        process = subprocess.Popen(spawn.argv, cwd=spawn.cwd, env=spawn.env, **pipes)
        _raise_oom_score(process.pid)
        yield Started(process)
        return
    with ExitStack() as until_end:
        held = until_end.enter_context(group(through.group)) if through.group else None
        opened = through.allowed if isinstance(through, Bubblewrap) else None
        network = until_end.enter_context(filtered_network(opened)) if opened is not None else None
        launch: _Launch = ((), ())
        if record is not None:
            sandbox = through.program if isinstance(through, Bubblewrap) else ""
            words, needed = until_end.enter_context(record.listening(sandbox.rsplit("/", 1)[-1]))
            launch = words, (needed,)
        if isinstance(through, Starter):
            yield Started(_start_through_starter(spawn, through, pipes, held, launch), held)
            return
        user = None
        if network is None:
            namespaces = NAMESPACES if through.nested else 0
            user = until_end.enter_context(limited_namespace(through.program, namespaces))
        place = _Place(network, user)
        yield Started(_start_in_bubblewrap(spawn, through, pipes, held, place, launch), held)


def _start_in_bubblewrap(
    spawn: Spawn,
    around: Bubblewrap,
    pipes: Mapping[str, Any],
    held: ControlGroup | None,
    place: _Place,
    launch: _Launch,
) -> subprocess.Popen[bytes]:
    with ExitStack() as stack:
        options = [*around.options, *_set_variables(spawn.env)]
        inherited = []
        network = place.network
        if place.user is not None:
            # `--sync-fd` keeps the descriptor in the sandbox's first process, and closes it in the command.
            options += ["--userns", str(place.user), "--sync-fd", str(place.user)]
            inherited.append(place.user)
        else:
            options += ["--unshare-user", *(() if around.nested else ("--disable-userns",))]
        if network:
            resolver = stack.enter_context(memory_file(network.resolver.encode()))
            options += _network_options(network, resolver.fileno())
            inherited.append(resolver.fileno())
        if program := call_filter(sockets=around.filters_sockets):
            rules = stack.enter_context(memory_file(program))
            options += ["--seccomp", str(rules.fileno())]
            inherited.append(rules.fileno())
        if any("\0" in word for word in options):
            raise ValueError("a path contains a null byte")
        arguments = stack.enter_context(memory_file(b"".join(os.fsencode(word) + b"\0" for word in options)))
        info, info_inside = _pipe(stack)
        wait, go = _pipe(stack)
        descriptors = [file.fileno() for file in (arguments, info_inside, wait)]
        words = zip(("--args", "--info-fd", "--block-fd"), map(str, descriptors), strict=True)
        enter = network.enter if network else ()
        process = subprocess.Popen(
            (*launch[0], *enter, around.program, *chain.from_iterable(words), "--", *spawn.argv),
            cwd="/",
            env=HELPER_ENV,
            pass_fds=[*inherited, *descriptors, *launch[1]],
            **pipes,
        )
        with _killed_on_error(process):
            # Otherwise reading would never end if bubblewrap fails.
            info_inside.close()
            if child := _child_of(info):
                _set_limits(child, around.limits, held)
            with suppress(BrokenPipeError):
                go.write(b"1")
        return process


def _start_through_starter(
    spawn: Spawn, around: Starter, pipes: Mapping[str, Any], held: ControlGroup | None, launch: _Launch
) -> subprocess.Popen[bytes]:
    _refuse_unusable(spawn.env)
    request = {
        "cwd": str(spawn.cwd),
        "env": dict(spawn.env),
        "limits": list(around.limits.items()),
        "rules": around.rules,
        "filter": call_filter(sockets=False).hex(),
        "oom_score": OOM_SCORE,
    }
    with ExitStack() as stack:
        settings, feed = _pipe(stack)
        process = subprocess.Popen(
            (*launch[0], sys.executable, "-IS", landlock.__file__, str(settings.fileno()), *spawn.argv),
            cwd="/",
            env=HELPER_ENV,
            pass_fds=(settings.fileno(), *launch[1]),
            **pipes,
        )
        with _killed_on_error(process), suppress(BrokenPipeError):
            settings.close()
            if held:
                held.add(process.pid)
            with feed:
                feed.write(json.dumps(request).encode())
        return process


@contextmanager
def _killed_on_error(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the helper on errors, so that it doesn't run the command with partial limits."""
    try:
        yield
    except BaseException:
        process.kill()
        process.wait()
        raise


def _network_options(network: FilteredNetwork, resolver: int) -> Iterator[str]:
    """Yield options for the filtered network's resolver and for mapping its root back to this user."""
    yield from ("--uid", str(os.getuid()), "--gid", str(os.getgid()))
    if network.resolver:
        yield from ("--ro-bind-data", str(resolver), "/etc/resolv.conf")


def _set_variables(env: Mapping[str, str]) -> Iterator[str]:
    _refuse_unusable(env)
    yield "--clearenv"
    for name, value in env.items():
        yield from ("--setenv", name, value)


def _refuse_unusable(env: Mapping[str, str]) -> None:
    """Raise `ValueError` for invalid variables; a NUL would end an option."""
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"'{name}' is not a valid variable name")
        if "\0" in value:
            raise ValueError(f"the variable {name} contains a null byte")
        # Linux's limit for one variable with its name, in bytes.
        if len(os.fsencode(name)) + len(os.fsencode(value)) + 2 > 131_072:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))


def _pipe(stack: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return stack.enter_context(os.fdopen(reading, "rb", 0)), stack.enter_context(os.fdopen(writing, "wb", 0))


def _child_of(info: BinaryIO) -> int | None:
    """Return the sandbox's first process, None if bubblewrap created none."""
    status = b""
    while not status.rstrip().endswith(b"}"):
        chunk = info.read(4096)
        if not chunk:
            return None
        status += chunk
    return int(json.loads(status)["child-pid"])


def _set_limits(pid: int, limits: Mapping[int, int], held: ControlGroup | None) -> None:
    """Set limits on a paused process; its children inherit them."""
    with suppress(ProcessLookupError):
        if held:
            held.add(pid)
        for which, limit in limits.items():
            _, hard = resource.getrlimit(which)
            value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.prlimit(pid, which, (value, value))
    _raise_oom_score(pid)


def _raise_oom_score(pid: int) -> None:
    # Skip processes that exited or changed user.
    with suppress(OSError):
        file = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, str(OOM_SCORE).encode())
        finally:
            os.close(file)
