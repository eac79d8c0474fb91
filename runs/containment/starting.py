"""Starts a command: as it is, in bubblewrap, or through a starter that limits itself first.

A helper (bubblewrap, the starter) gets a fixed environment and starts in `/`. The command's variables reach it
through a file descriptor, so they act on nothing outside the sandbox and stand in no argument list.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from runs.containment import landlock
from runs.containment.cgroups import Group, GroupLimits, group
from runs.containment.egress import Allowed
from runs.containment.filtered_network import FilteredNetwork, filtered_network
from runs.containment.helpers import HELPER_ENV, memory_file

OOM_SCORE = 500
"""The kernel ends commands before the worker when memory runs out."""
_LONGEST_WORD = 131_072
"""Bytes of one variable with its name that Linux takes."""


@dataclass(frozen=True)
class Bubblewrap:
    """Namespaces around a command."""

    program: str
    options: tuple[str, ...]
    """All but the variables."""
    limits: Mapping[int, int] = field(default_factory=dict)
    """Resource limits by their number in `resource`."""
    allowed: tuple[Allowed, ...] | None = None
    """What a filtered network opens; None makes no such network."""
    group: GroupLimits | None = None


@dataclass(frozen=True)
class Starter:
    """Resource limits, and Landlock's rules where there are any, around a command."""

    limits: Mapping[int, int]
    rules: Mapping[str, Any] | None = None
    group: GroupLimits | None = None


@dataclass(frozen=True)
class Spawn:
    """A command as it is started; `cwd` is a path of the host, `env` the command's whole environment."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    through: Bubblewrap | Starter | None = None

    @property
    def contained(self) -> bool:
        """Whether a pid namespace ends everything that the command starts."""
        return isinstance(self.through, Bubblewrap)


@dataclass(frozen=True)
class Started:
    """A command that runs."""

    process: subprocess.Popen[bytes]
    group: Group | None = None

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has ended it for its limit."""
        return self.group is not None and self.group.out_of_memory


@contextmanager
def started(spawn: Spawn, **pipes: Any) -> Iterator[Started]:
    """Start a command with the pipes of `subprocess.Popen`. Raises `OSError` or `ValueError` where it can't start."""
    through = spawn.through
    if through is None:
        process = subprocess.Popen(spawn.argv, cwd=spawn.cwd, env=spawn.env, **pipes)
        _raise_oom_score(process.pid)
        yield Started(process)
        return
    with ExitStack() as until_end:
        held = until_end.enter_context(group(through.group)) if through.group else None
        if isinstance(through, Starter):
            yield Started(_start_through_starter(spawn, through, pipes, held), held)
            return
        opened = through.allowed
        network = until_end.enter_context(filtered_network(opened)) if opened is not None else None
        yield Started(_start_in_bubblewrap(spawn, through, pipes, held, network), held)


def _start_in_bubblewrap(
    spawn: Spawn,
    around: Bubblewrap,
    pipes: Mapping[str, Any],
    held: Group | None,
    network: FilteredNetwork | None,
) -> subprocess.Popen[bytes]:
    with ExitStack() as stack:
        options = [*around.options, *_set_variables(spawn.env)]
        inherited = []
        if network:
            resolver = stack.enter_context(memory_file(network.resolver.encode()))
            options += _network_options(network, resolver.fileno())
            inherited.append(resolver.fileno())
        given = stack.enter_context(_option_file(options))
        info, info_inside = _pipe(stack)
        wait, go = _pipe(stack)
        own = [file.fileno() for file in (given, info_inside, wait)]
        words = zip(("--args", "--info-fd", "--block-fd"), map(str, own), strict=True)
        enter = network.enter if network else ()
        process = subprocess.Popen(
            (*enter, around.program, *chain.from_iterable(words), "--", *spawn.argv),
            cwd="/",
            env=HELPER_ENV,
            pass_fds=[*inherited, *own],
            **pipes,
        )
        with _killed_on_error(process):
            # Else reading would never end where bubblewrap fails.
            info_inside.close()
            if child := _child_of(info):
                _hold_down(child, around.limits, held)
            with suppress(BrokenPipeError):
                go.write(b"1")
        return process


def _start_through_starter(
    spawn: Spawn, around: Starter, pipes: Mapping[str, Any], held: Group | None
) -> subprocess.Popen[bytes]:
    _refuse_unusable(spawn.env)
    given = {
        "cwd": str(spawn.cwd),
        "env": dict(spawn.env),
        "limits": list(around.limits.items()),
        "rules": around.rules,
        "oom_score": OOM_SCORE,
    }
    with ExitStack() as stack:
        settings, feed = _pipe(stack)
        process = subprocess.Popen(
            (sys.executable, "-IS", landlock.__file__, str(settings.fileno()), *spawn.argv),
            cwd="/",
            env=HELPER_ENV,
            pass_fds=(settings.fileno(),),
            **pipes,
        )
        with _killed_on_error(process), suppress(BrokenPipeError):
            settings.close()
            if held:
                held.add(process.pid)
            with feed:
                feed.write(json.dumps(given).encode())
        return process


@contextmanager
def _killed_on_error(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """A helper that is not told otherwise would run the command without what was still to be done."""
    try:
        yield
    except BaseException:
        process.kill()
        process.wait()
        raise


def _network_options(network: FilteredNetwork, resolver: int) -> Iterator[str]:
    """Yield what a filtered network changes: its resolver, and this user, who is root in it, as before."""
    yield from ("--uid", str(os.getuid()), "--gid", str(os.getgid()))
    if network.resolver:
        yield from ("--ro-bind-data", str(resolver), "/etc/resolv.conf")


def _set_variables(env: Mapping[str, str]) -> Iterator[str]:
    _refuse_unusable(env)
    yield "--clearenv"
    for name, value in env.items():
        yield from ("--setenv", name, value)


def _refuse_unusable(env: Mapping[str, str]) -> None:
    """Raise `ValueError` for variables that no process can have; a NUL would end the word of an option."""
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"'{name}' is no name of a variable")
        if "\0" in value:
            raise ValueError(f"the variable {name} holds a null byte")
        if len(os.fsencode(name)) + len(os.fsencode(value)) + 2 > _LONGEST_WORD:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))


def _option_file(words: Sequence[str]) -> BinaryIO:
    if any("\0" in word for word in words):
        raise ValueError("a path holds a null byte")
    return memory_file(b"".join(os.fsencode(word) + b"\0" for word in words))


def _pipe(stack: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return stack.enter_context(os.fdopen(reading, "rb", 0)), stack.enter_context(os.fdopen(writing, "wb", 0))


def _child_of(info: BinaryIO) -> int | None:
    """Return the first process of the sandbox, None where bubblewrap made none."""
    said = b""
    while not said.rstrip().endswith(b"}"):
        chunk = info.read(4096)
        if not chunk:
            return None
        said += chunk
    return int(json.loads(said)["child-pid"])


def _hold_down(pid: int, limits: Mapping[int, int], held: Group | None) -> None:
    """Set limits on a process that waits; what it starts inherits them."""
    with suppress(ProcessLookupError):
        if held:
            held.add(pid)
        for which, wanted in limits.items():
            _, hard = resource.getrlimit(which)
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, which, (value, value))
    _raise_oom_score(pid)


def _raise_oom_score(pid: int) -> None:
    # A process that is gone, or that has become another user's, needs none.
    with suppress(OSError):
        file = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, str(OOM_SCORE).encode())
        finally:
            os.close(file)
