"""Read other people's files in processes with limits, so that no file can stop or fill the server."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import msgpack

from evalhub.lib.busy import TryLater, asking_project
from runs.errors import RequestError
from runs.sandbox.helper_processes import HelperEnded, HelperProcesses, HelpersBusy
from runs.sandbox.reader_program import (
    MEMORY_BYTES,
    SECONDS,
    ReadingAnswer,
    ReadingJob,
    decode,
    encode,
    too_much,
)
from scenarios.formats.parsed import ScenarioFileError
from scenarios.reading import FileReader

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from runs.sandbox.reader_program import main; main({{}}, {{}})"
WAIT = 5.0
"""Seconds to wait for a free process."""
PATIENCE = 30.0
"""Seconds to wait for its answer: several times its processor time, because the machine may be busy."""
BUSY = "Other files are being read. Nothing was stored; try again in a minute."


class ReaderProcesses(HelperProcesses):
    """Helpers that call the functions that read files; a `scenarios.reading.Caller`."""

    def __init__(self, *, seconds: float = SECONDS, memory: int = MEMORY_BYTES) -> None:
        """`seconds` is the processor time of a job, `memory` its bytes."""
        self._seconds = seconds
        self._reading: set[int] = set()
        """The projects whose files are being read."""
        self._is_read = threading.Condition()
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        # Processes of a server's process, each of 60 MB and started when a file is uploaded. A project has
        # one at a time.
        super().__init__(
            [sys.executable, "-I", "-c", PROGRAM.format(seconds, memory)],
            most=2,
            wait=WAIT,
            patience=PATIENCE,
            environment=environment,
        )

    def __call__(self, reader: FileReader[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return what a reader returns. Raises what it raises, and `RuntimeError` for a fault of evalhub's own."""
        job = encode(ReadingJob(reader.name, msgspec.Raw(encode(arguments))))
        try:
            with self._in_turn(asking_project.get()):
                # Bytes: the files of the largest upload, and what is read of them.
                answer = msgpack.decode(self.ask(job, 192 << 20), type=ReadingAnswer)
        except HelpersBusy as error:
            raise TryLater(BUSY) from error
        except (HelperEnded, msgspec.DecodeError) as error:
            raise too_much(arguments[0], self._seconds) from error
        if answer.fault:
            raise RuntimeError(answer.fault)
        if answer.refusal:
            raise RequestError(answer.refusal)
        if answer.problems:
            raise ScenarioFileError(answer.problems)
        return decode(answer.result, reader.types()[1])

    @contextmanager
    def _in_turn(self, project: int | None) -> Iterator[None]:
        """Let a project read one file at a time, so that others can. Raises `HelpersBusy`."""
        if project is None:
            yield
            return
        with self._is_read:
            if not self._is_read.wait_for(lambda: project not in self._reading, WAIT):
                raise HelpersBusy
            self._reading.add(project)
        try:
            yield
        finally:
            with self._is_read:
                self._reading.discard(project)
                self._is_read.notify_all()
