"""Start a recorder beside a command, and read what it recorded."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runs.containment.helpers import HELPER_ENV, memory_file
from runs.containment.recording import launcher, recorder
from runs.errors import ProviderError

END_SECONDS = 3.0
"""Seconds that a recorder may take to write the last ends after the command."""
LARGEST_RECORD = 64 << 20
_CUT = (signal.SIGTERM, signal.SIGKILL)


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
        }
        self._recorder: subprocess.Popen[bytes] | None = None
        self.stopped_at = float("inf")
        """When evalhub ended the command, or it ended by itself, in seconds since 1970."""
        self.content: bytes | None = None
        """A call on each line (`evaluators.recorded_calls.RecordedCall`); None before the command has ended."""
        self.lost = 0
        """Executions that could not be looked at."""

    @contextmanager
    def listening(self, sandbox: str) -> Iterator[tuple[tuple[str, ...], int]]:
        """Start the recorder; give the words that start the launcher before a command, and the descriptor it needs.

        `sandbox` is the name of the program around the command. Raises `OSError`.
        """
        with ExitStack() as stack:
            ours, theirs = socket.socketpair()
            stack.callback(theirs.close)
            output = stack.enter_context(memory_file(b""))
            settings = stack.enter_context(
                memory_file(json.dumps({**self._settings, "sandbox": sandbox}).encode())
            )
            given = [ours.fileno(), output.fileno(), settings.fileno()]
            with ours:
                self._recorder = subprocess.Popen(
                    (sys.executable, "-IS", recorder.__file__, *map(str, given)),
                    cwd="/",
                    env=HELPER_ENV,
                    pass_fds=given,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            stack.callback(self._end)
            fd = theirs.fileno()
            yield (sys.executable, "-IS", launcher.__file__, str(fd)), fd
            theirs.close()
            self._wait()
            output.seek(0)
            self._read(output.read(LARGEST_RECORD))

    @property
    def has_died(self) -> bool:
        """Whether the recorder ended before its command: nothing can be executed there any more."""
        return self._recorder is not None and self._recorder.poll() not in (None, 0)

    def stop(self) -> None:
        """Say that the command has ended, or that evalhub ends it now: later signals are not the agent's."""
        self.stopped_at = min(self.stopped_at, time.time())

    def _wait(self) -> None:
        self.stop()
        if self._recorder:
            with suppress(subprocess.TimeoutExpired):
                self._recorder.wait(END_SECONDS)

    def _end(self) -> None:
        process = self._recorder
        if process is None:
            return
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stderr:
            process.stderr.close()

    def _read(self, content: bytes) -> None:
        lines = []
        is_whole = False
        for line in content.splitlines():
            call = json.loads(line)
            if "n" not in call:
                self.lost, is_whole = call["lost"], True
                continue
            ended = call["start"] + call["seconds"]
            if call["signal"] in _CUT and ended >= self.stopped_at - 0.05:
                call["signal"] = None
            lines.append(json.dumps(call))
        if not is_whole:
            raise ProviderError(
                "The recorder of the tool's calls ended before the agent: nothing could be executed any more. "
                "Run the trial again, or set record_tool: false in the scenario.",
                kind="recording",
            )
        self.content = "".join(f"{line}\n" for line in lines).encode()


def places_of(program: str, workspace: str, path: str) -> tuple[str, ...]:
    """Return where a program may lie as a sandbox sees it: relative to the workspace, else on PATH."""
    if "/" in program:
        return (os.path.normpath(os.path.join(workspace, program)),)
    return tuple(f"{folder}/{program}" for folder in path.split(":") if folder.startswith("/"))
