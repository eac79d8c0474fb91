"""The newest lines of an output: one thread writes them, another one takes them now and then."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Lock
from typing import Literal

from evalhub.lib.limits import LARGEST_FILE
from runs.sandbox.safe_paths import open_beneath
from runs.sandbox.streams import Capture

KEPT = 1 << 18
"""Bytes at the end of an output that are kept until somebody takes them; what came before is let go."""


class SplitLines:
    """Splits an output into lines. Programs can print hundreds of megabytes without a line end."""

    def __init__(self) -> None:
        self._open = Capture(LARGEST_FILE)

    def take(self, chunk: bytes) -> list[bytes]:
        """Return the lines that these bytes complete."""
        first, *others = chunk.split(b"\n")
        self._open.add(first)
        if not others:
            return []
        lines = [self.rest(), *others[:-1]]
        self._open.add(others[-1])
        return lines

    def rest(self) -> bytes:
        """Return the line without an end, and forget it."""
        line, self._open = self._open.content(), Capture(LARGEST_FILE)
        return line


class PrintedLines:
    """What a process prints to standard output. To keep it costs what copying it costs; nothing is read."""

    def __init__(self) -> None:
        self.missed = False
        """Whether any bytes were let go that nobody had taken."""
        self._recent = bytearray()
        self._lock = Lock()

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        """Keep the next bytes."""
        if stream == "stdout":
            with self._lock:
                self._recent += chunk
                # Trimmed only now and then: each time moves all that is kept.
                if len(self._recent) > 2 * KEPT:
                    del self._recent[:-KEPT]
                    self.missed = True

    def complete(self) -> bytes:
        """Return the complete lines since the last call, the first one perhaps without its beginning."""
        with self._lock:
            end = self._recent.rfind(b"\n") + 1
            lines = bytes(self._recent[:end])
            del self._recent[:end]
        return lines


class WrittenLines:
    """What a process that nobody trusts writes to a file, which need not be there yet."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.missed = False
        """Whether any bytes were dropped, or the file was rewritten."""
        self._read = 0
        """Bytes from the beginning that were returned or let go."""

    def complete(self) -> bytes:
        """Return the complete lines since the last call, the first one perhaps without its beginning."""
        try:
            descriptor = open_beneath(self._file.parent, self._file.name, os.O_RDONLY)
        except OSError:
            return b""
        try:
            return self._lines(descriptor)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def _lines(self, descriptor: int) -> bytes:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            return b""
        # A file that became shorter was rewritten.
        begin = self._read if self._read <= state.st_size else 0
        begin = max(begin, state.st_size - KEPT)
        self.missed |= begin != self._read
        content = os.pread(descriptor, KEPT, begin)
        lines = content[: content.rfind(b"\n") + 1]
        self._read = begin + len(lines)
        return lines
