"""Read other people's files in processes with limits, so that no file can stop or fill the server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from evalhub.lib.busy import TryLater
from runs.sandbox.helper_processes import HelperEnded, HelperProcesses, HelpersBusy
from runs.sandbox.reader_program import LARGEST_ANSWER, MEMORY_BYTES, SECONDS, too_much
from scenarios.bundle_limits import MAX_TOTAL_BYTES
from scenarios.bundles import Bundle
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.problems import ScenarioFileError
from scenarios.reading_messages import ReadingAnswer, ReadingJob, decode_answer, encode, job_of, restore_suite

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from runs.sandbox.reader_program import main; main({{}}, {{}})"
MOST = 2
"""Processes of a server's process, each of 60 MB and started when a file is uploaded."""
WAIT = 5.0
"""Seconds to wait for a free process."""
PATIENCE = 30.0
"""Seconds to wait for its answer: several times its processor time, for a busy machine."""
BUSY = "Other files are being read. Nothing was stored; try again in a minute."


class ReaderProcesses(HelperProcesses):
    """Helpers that read uploads; see `scenarios.reading.Reader`."""

    def __init__(self, *, seconds: float = SECONDS, memory: int = MEMORY_BYTES) -> None:
        """`seconds` is the processor time of a job, `memory` its bytes."""
        self._seconds = seconds
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        super().__init__(
            [sys.executable, "-I", "-c", PROGRAM.format(seconds, memory)],
            most=MOST,
            wait=WAIT,
            patience=PATIENCE,
            environment=kept,
        )

    def read_upload(self, name: str, data: bytes) -> Bundle:
        """Return the files of an archive, or the single file."""
        answer = self._answer(ReadingJob(name=name, data=data), MAX_TOTAL_BYTES + LARGEST_ANSWER)
        return Bundle(answer.name, answer.files, frozenset(answer.executables))

    def read_suites(self, bundle: Bundle, *, command_pattern: str, strict: bool) -> tuple[ParsedSuite, ...]:
        """Return the suites in an upload's files. Raises `RuntimeError` for a fault of evalhub's own."""
        job = job_of(bundle, command_pattern=command_pattern, strict=strict)
        answer = self._answer(job, LARGEST_ANSWER)
        return tuple(restore_suite(suite, bundle.files) for suite in answer.suites)

    def _answer(self, job: ReadingJob, most: int) -> ReadingAnswer:
        try:
            answer = decode_answer(self.ask(encode(job), most))
        except HelpersBusy as error:
            raise TryLater(BUSY) from error
        except (HelperEnded, msgspec.DecodeError) as error:
            raise too_much(job.name, self._seconds) from error
        if answer.fault:
            raise RuntimeError(answer.fault)
        if answer.problems:
            raise ScenarioFileError(answer.problems)
        return answer
