"""Run one command until it and its children have ended.

The command is the leader of its own session. Its output is drained while it runs, its end is seen at
once (a pidfd, no polling), and nothing that it started is left when `run_process` returns. The caller's
thread waits: the kernel's parent-death signal of a sandbox belongs to the thread that started it.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from runs.errors import ProviderError
from runs.sandbox.process_io import ProcessDialogue, Stop, too_much_memory
from runs.sandbox.process_tree import MARKER
from runs.sandbox.profiles import UNLIMITED, ProcessLimits
from runs.sandbox.recording.record import ToolRecord
from runs.sandbox.starting import Spawn, Started, start_command
from runs.sandbox.streams import Sink

OUTPUT_LIMIT = 10 << 20
FLOOD_LIMIT = 256 << 20
SHELL = "/bin/sh"


class Wrapper(Protocol):
    """The part of a sandbox that starts commands."""

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Spawn: ...


@dataclass(frozen=True)
class ProcessResult:
    """How a process ended and what it printed; the bytes need not be UTF-8."""

    exit_code: int | None
    """Negative: the signal that ended it. None: it did not end although killed."""
    stdout: bytes = b""
    stderr: bytes = b""
    output: bytes = b""
    """Both streams in order of arrival."""
    timed_out: bool = False
    cancelled: bool = False
    truncated: bool = False
    seconds: float = 0.0
    error: str = ""
    """Why it was stopped, in a sentence; empty if it exited on its own."""
    left_behind: int = 0
    """Number of leftover processes that were killed."""
    lingered: bool = False
    """Whether it was ended because it had done its work and didn't end by itself."""

    @property
    def summary(self) -> str:
        """The end of its output, or why it was stopped, without a full stop."""
        text = (self.stderr or self.stdout).decode("utf-8", "replace").strip()
        return text[-500:].rstrip(".") or self.error.rstrip(".") or "no output"


def run_process(
    command: Sequence[str] | str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float,
    stdin: bytes | None = None,
    output_limit: int = OUTPUT_LIMIT,
    flood_limit: int = FLOOD_LIMIT,
    sinks: Sequence[Sink] = (),
    cancelled: Callable[[], bool] | None = None,
    limits: ProcessLimits = UNLIMITED,
    sandbox: Wrapper | None = None,
    grace_seconds: float = 0.25,
    record: ToolRecord | None = None,
    stdout_socket: bool = False,
    lingers: Callable[[], bool] | None = None,
) -> ProcessResult:
    """Run a list of arguments, or a text through the shell, and return how it ended.

    Past `output_limit` bytes a stream keeps its head and tail, past `flood_limit` the command is ended.
    Timeout and cancellation send SIGTERM and, `grace_seconds` later, SIGKILL to all of it; limits send both at once.
    `env` is the whole environment. Raises `ProviderError`: of kind `start` where nothing could be started, of
    kind `memory` where it was ended because the commands of this worker together used too much, of kind `recording`
    where `record`, which gets the executions of the tool, could not be kept. With `stdout_socket` standard output is
    a socket, which no other process can open through /proc and write to. It is ended without an error once `lingers`.
    """
    argv = (SHELL, "-c", command) if isinstance(command, str) else tuple(command)
    spawn = sandbox.wrap(argv, cwd=cwd, env=env) if sandbox else Spawn(argv, cwd, env)
    spawn, marker = _mark_descendants(spawn)
    if record is not None:
        asked, died = cancelled, record
        cancelled = lambda: died.has_died or (asked is not None and asked())  # noqa: E731
    with _start(spawn, record, piped_stdin=stdin is not None, stdout_socket=stdout_socket) as (
        begun,
        kept_end,
    ):
        conversation = ProcessDialogue(
            begun.process,
            marker=marker,
            stdin=stdin,
            output_limit=output_limit,
            stop=Stop(timeout_seconds, grace_seconds, flood_limit, cancelled, limits, lingers),
            sinks=sinks,
            record=record,
            kept_end=kept_end,
        )
        conversation.hold()
        if begun.out_of_memory and limits.rss_bytes is not None:
            conversation.reason, conversation.sentence = "limits", too_much_memory(limits.rss_bytes)
    if conversation.reason == "worker":
        raise ProviderError(conversation.sentence, kind="memory")
    streams = conversation.streams
    return ProcessResult(
        exit_code=conversation.exit_code,
        stdout=streams.stdout.content(),
        stderr=streams.stderr.content(),
        output=streams.merged.content(),
        timed_out=conversation.reason == "timeout",
        cancelled=conversation.reason == "cancelled",
        truncated=streams.truncated,
        seconds=conversation.seconds,
        error=conversation.sentence,
        left_behind=conversation.left_behind,
        lingered=conversation.reason == "lingered",
    )


def _mark_descendants(spawn: Spawn) -> tuple[Spawn, str]:
    """Return a command with a variable that marks its descendants, and the mark; empty where a namespace holds them."""
    marker = "" if spawn.contained else secrets.token_hex(8)
    return (replace(spawn, env={**spawn.env, MARKER: marker}) if marker else spawn), marker


@contextmanager
def _start(
    spawn: Spawn, record: ToolRecord | None, *, piped_stdin: bool, stdout_socket: bool
) -> Iterator[tuple[Started, socket.socket | None]]:
    """Start a command; give the end of the socket pair that it writes to, too."""
    if not spawn.cwd.is_dir():
        raise ProviderError(
            f"The command cannot start: its working directory {spawn.cwd} does not exist. "
            "Create it on the worker or correct `cwd`."
        )
    with ExitStack() as stack:
        pair = [stack.enter_context(each) for each in socket.socketpair()] if stdout_socket else []
        try:
            begun = stack.enter_context(
                start_command(
                    spawn,
                    record,
                    stdin=subprocess.PIPE if piped_stdin else subprocess.DEVNULL,
                    stdout=pair[1] if pair else subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    bufsize=0,
                )
            )
        except (OSError, ValueError) as error:
            raise ProviderError(_cannot_start(spawn.argv[0], error)) from error
        if pair:
            begun.process.stdout = os.fdopen(pair[0].detach(), "rb", 0)
        yield begun, pair[1] if pair else None


def _cannot_start(program: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"The command cannot start: there is no program {program}. Install it on the worker or correct its path."
    if isinstance(error, PermissionError):
        return f"The command cannot start: {program} may not be executed. Make it executable on the worker."
    if isinstance(error, OSError) and error.errno == 7:
        return (
            "The command cannot start: its arguments are longer than the system allows. "
            "Let it read the prompt from a file or from standard input."
        )
    return f"The command cannot start: {program}: {error}. Correct the command."
