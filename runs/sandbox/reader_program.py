"""Read uploads in a process of its own: jobs from standard input, answers to standard output.

The kernel ends it when a job takes too much processor time; it answers itself where a job needs too much memory.
"""

from __future__ import annotations

import resource
import signal
import sys
import traceback
from contextlib import suppress

from evaluators.patterns import set_runner
from runs.sandbox.pattern_helper import message
from runs.sandbox.pattern_processes import run_pattern
from scenarios.bundles import Bundle
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.reading import ReaderHere
from scenarios.reading_messages import ReadingAnswer, ReadingJob, decode_job, describe_suite, encode

SECONDS = 10.0
"""Of processor time, for an upload."""
MEMORY_BYTES = 768 << 20
"""Of its own, beside the program."""
LARGEST_ANSWER = 64 << 20
"""Bytes of what it reads, without the files themselves."""


def too_much(name: str, seconds: float = SECONDS) -> ScenarioFileError:
    """Return the error of an upload that took more."""
    what = f"The upload needs more than {seconds:g} s or {MEMORY_BYTES >> 20} MB to read."
    fix = "Split it, or make its files smaller."
    return ScenarioFileError(
        [Problem(file=name, line=1, where="", what=what, fix=fix, id="bundle/too-much-to-read")]
    )


def answer_job(job: ReadingJob) -> ReadingAnswer:
    """Return what came of a job."""
    reader = ReaderHere()
    try:
        if job.data is not None:
            bundle = reader.read_upload(job.name, job.data)
            return ReadingAnswer(
                files=dict(bundle.files), executables=sorted(bundle.executables), name=bundle.name
            )
        bundle = Bundle(job.name, job.files, frozenset(job.executables))
        suites = reader.read_suites(bundle, command_pattern=job.command_pattern, strict=job.strict)
        return ReadingAnswer(suites=[describe_suite(suite, job.files) for suite in suites])
    except ScenarioFileError as error:
        return ReadingAnswer(problems=list(error.problems))
    except (MemoryError, RecursionError):
        return ReadingAnswer(problems=list(too_much(job.name).problems))
    except Exception:
        # Broad because who asked logs it, as if it had happened there.
        return ReadingAnswer(fault=traceback.format_exc())


def main(seconds: float, memory: int) -> None:
    """ReadingAnswer until standard input ends; a job may take so much processor time and so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS has no such limit.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    # Ctrl-C is for the process that asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_runner(run_pattern)
    while job := message(sys.stdin.buffer):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answered = encode(answer_job(decode_job(job)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(len(answered).to_bytes(4) + answered)
        sys.stdout.buffer.flush()
