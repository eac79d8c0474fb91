"""Start a recorder beside a command, and read what it recorded."""

from __future__ import annotations

import array
import atexit
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from evalhub.lib.limits import LARGEST_RECORD
from runs.errors import ProviderError
from runs.sandbox.helper_processes import HELPER_ENV, memory_file
from runs.sandbox.recording import launcher, recorder

_KILLED = frozenset(128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM))


@dataclass(frozen=True)
class RecordedTool:
    """Which program is recorded: its name, and its places as the sandbox sees them."""

    name: str
    places: tuple[str, ...] = ()
    by_name: bool = False
    """Whether any program of that name is the tool."""


class ToolRecord:
    """The record of one command: given to `run_process`, and read after it."""

    def __init__(self, tool: RecordedTool, workspace: Path, inside: str, writable: Sequence[str]) -> None:
        self.tool = tool
        self._settings = {
            "name": tool.name,
            "places": list(tool.places),
            "by_name": tool.by_name,
            "workspace": str(workspace),
            "inside": inside,
            "writable": list(writable),
            "worker": os.getpid(),
            "most_bytes": LARGEST_RECORD,
        }
        self._alive: BinaryIO | None = None
        self._output: BinaryIO | None = None
        self.stopped_at = float("inf")
        """When evalhub began to end the command, in seconds since 1970."""
        self.ended_at = float("inf")
        """When the command had ended."""
        self.closed_at = float("inf")
        """When the agent's stream had its closing event: what still runs then is ended by the agent's exit."""
        self.result_at = float("inf")
        """When a closed stream had the last result of a call."""
        self.content: bytes | None = None
        """A call on each line (`evaluators.tool_use.recorded_commands.RecordedCall`); None before the command has ended."""
        self.lost = 0
        """Executions that could not be looked at, and lines that can't be read."""

    @contextmanager
    def listening(self, sandbox: str) -> Iterator[tuple[tuple[str, ...], int]]:
        """Start the recorder; give the words that start the launcher before a command, and the descriptor it needs.

        `sandbox` is the name of the program around the command. Raises `OSError`.
        """
        with ExitStack() as stack:
            ours, theirs = socket.socketpair()
            stack.callback(theirs.close)
            output = self._output = stack.enter_context(memory_file(b""))
            reading, writing = os.pipe()
            self._alive = stack.enter_context(os.fdopen(reading, "rb", 0))
            with ours, os.fdopen(writing, "wb", 0):
                settings = json.dumps({**self._settings, "sandbox": sandbox}).encode()
                pid = _recorders.start(settings, (ours.fileno(), output.fileno(), writing))
            stack.callback(self._end, pid)
            yield (sys.executable, "-IS", launcher.__file__, str(theirs.fileno())), theirs.fileno()
            theirs.close()
            self.end()
            # Seconds after the command until its recorder is told to end: a process may have escaped.
            if not self._ends_within(1.0):
                os.kill(pid, signal.SIGTERM)
                # Seconds that a recorder may take to write the last ends after the command.
                self._ends_within(15.0)
            output.seek(0)
            self.read(output.read(LARGEST_RECORD))

    @property
    def has_died(self) -> bool:
        """Whether the recorder ended before its command: nothing can be executed there any more."""
        return self._ends_within(0) and not self._is_whole()

    def _is_whole(self) -> bool:
        """Return whether the recorder wrote its last line: then everything below its command has ended."""
        if self._output is None:
            return False
        descriptor = self._output.fileno()
        return b'{"lost"' in os.pread(descriptor, 64, max(0, os.fstat(descriptor).st_size - 64))

    def stop(self) -> None:
        """Say that evalhub ends the command now: later ends of calls are not the agent's."""
        self.stopped_at = min(self.stopped_at, time.time())

    def end(self) -> None:
        """Say that the command has ended: what it left behind is killed."""
        self.ended_at = min(self.ended_at, time.time())

    def _ends_within(self, seconds: float) -> bool:
        """Return whether the recorder ends within these seconds: then its pipe is closed."""
        return self._alive is not None and bool(select.select([self._alive], [], [], seconds)[0])

    def _end(self, pid: int) -> None:
        if not self._ends_within(0):
            os.kill(pid, signal.SIGKILL)

    def read(self, content: bytes) -> None:
        """Take the lines that a recorder wrote; a broken one is a lost call. Raises `ProviderError` without its last line."""
        lines = []
        is_whole = False
        for line in content.splitlines():
            try:
                call = json.loads(line)
                if "n" in call:
                    lines.append(json.dumps(self._without_our_ends(call)))
                else:
                    self.lost, is_whole = self.lost + call["lost"], True
            except (ValueError, KeyError, TypeError):
                self.lost += 1
        if not is_whole:
            raise ProviderError(
                "The recorder of the tool's calls ended before the agent: nothing could be executed any more. "
                "Run the trial again, or set record_tool: false in the scenario.",
                kind="recording",
            )
        self.content = "".join(f"{line}\n" for line in lines).encode()

    def _without_our_ends(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return a call, without its end if evalhub or the agent's exit caused it.

        What was killed, or whose child was, may exit with a code.
        """
        ended = call["start"] + call["seconds"]
        # The command itself, which may be a call, has no parents.
        is_child = bool(call["parents"])
        is_ours = ended >= self.stopped_at or (is_child and ended >= min(self.ended_at, self.closed_at))
        # Agents kill what they left in the background shortly before their closing event arrives, or after it.
        was_killed = call.get("signal") is not None or call.get("exit") in _KILLED
        is_ours |= was_killed and ended >= self.result_at
        return {**call, "exit": None, "signal": None} if is_ours else call


class _Recorders:
    """The process of this worker that forks recorders, started when the first is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._asking: socket.socket | None = None
        self._owner = 0

    def start(self, settings: bytes, descriptors: Sequence[int]) -> int:
        """Start a recorder with these descriptors and return its number. Raises `OSError`."""
        with self._lock:
            if (
                self._asking is None
                or self._owner != os.getpid()
                or not (self._process is not None and self._process.poll() is None)
            ):
                self._begin()
            try:
                return self._ask(settings, descriptors)
            except OSError:
                self._begin()
                return self._ask(settings, descriptors)

    def close(self) -> None:
        """End the process once its recorders have ended; nothing if none was started here."""
        if self._asking is not None:
            self._asking.close()
        if self._process is not None and self._owner == os.getpid():
            self._process.wait()
        self._asking = self._process = None

    def _begin(self) -> None:
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-IS", recorder.__file__, str(theirs.fileno())),
                cwd="/",
                env=HELPER_ENV,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._asking, self._owner = ours, os.getpid()

    def _ask(self, settings: bytes, descriptors: Sequence[int]) -> int:
        if self._asking is None:
            raise OSError("no recorder was started")
        rights = array.array("i", descriptors)
        self._asking.sendmsg([settings], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        answer = self._asking.recv(4)
        if len(answer) < 4:
            raise OSError("the recorder ended at its start")
        return int(struct.unpack("i", answer)[0])


_recorders = _Recorders()
atexit.register(_recorders.close)


def list_program_places(program: str, workspace: str, path: str) -> tuple[str, ...]:
    """Return where a program may lie as a sandbox sees it: relative to the workspace, else on PATH."""
    if "/" in program:
        return (os.path.normpath(os.path.join(workspace, program)),)
    return tuple(f"{folder}/{program}" for folder in path.split(":") if folder.startswith("/"))
