"""Executions of the tool that evalhub recorded from the kernel, outside the agent's reach."""

from __future__ import annotations

from msgspec import Struct


class Process(Struct, frozen=True, omit_defaults=True, gc=False):
    """A process that asked for an execution of the tool, or one of its ancestors. Its arguments are its own claim."""

    pid: int
    argv: tuple[str, ...] = ()
    """The first arguments, cut to a few thousand characters."""
    exe: str = ""
    """The path of its program, as the process sees it."""
    script: str = ""
    """The script that an interpreter or shell runs; empty for inline code and other programs."""
    written: bool = False
    """Whether the script did not exist in the workspace when the agent began, and lies where the agent can write."""


class RecordedCall(Struct, frozen=True, omit_defaults=True, gc=False):
    """One execution of the tool."""

    n: int
    """From 1, in the order of starts."""
    how: str
    """How it was recognized: `file`, `copy`, `name`, `argument` or `module`."""
    path: str
    argv: tuple[str, ...]
    start: float
    """Seconds since 1970."""
    cwd: str = ""
    asker: Process | None = None
    """The process that asked for the execution, as it was before it: the shell with its command line."""
    parents: tuple[Process, ...] = ()
    """Its ancestors from the nearest to the agent's first process."""
    within: int | None = None
    """The number of the tool's own call that started it."""
    seconds: float | None = None
    exit: int | None = None
    """The exit code; None if a signal ended it or nothing is known."""
    signal: int | None = None
    """The signal that ended it."""
    stdout: str = ""
    stderr: str = ""
    """Its first output, where recording takes output, too."""
