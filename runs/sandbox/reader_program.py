"""Read other people's files in a process of its own: jobs from standard input, answers to standard output.

The kernel ends it when a job takes too much processor time; it answers itself where a job needs too much memory.
"""

from __future__ import annotations

import resource
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Struct, msgpack
from pydantic import BaseModel

from evalhub.lib.storable_text import storable_parts
from evaluators.model import CHECKED
from evaluators.patterns import set_runner
from runs.errors import RequestError
from runs.sandbox.pattern_helper import receive_message
from runs.sandbox.pattern_processes import run_pattern
from scenarios.formats.parsed import Problem, ScenarioFileError
from scenarios.reading import FileReader

SECONDS = 10.0
"""Of processor time, for an upload."""
MEMORY_BYTES = 768 << 20
"""Of its own, beside the program."""


class ReadingJob(Struct, frozen=True):
    """A call of a `FileReader`: its name, and its arguments in MessagePack."""

    reader: str
    arguments: msgspec.Raw


class ReadingAnswer(Struct, frozen=True):
    """The outcome of a job: its result in MessagePack, or what is wrong with the file."""

    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    problems: list[Problem] = []
    refusal: str = ""
    """The message of a `RequestError`."""
    fault: str = ""
    """The traceback of an error of evalhub's own."""


def encode(value: Any) -> bytes:
    """Return a value in MessagePack. Raises `OverflowError` for a whole number of more than 64 bits."""
    try:
        return msgpack.encode(value, enc_hook=_dump_model)
    except UnicodeEncodeError:
        return msgpack.encode(storable_parts(msgspec.to_builtins(value, enc_hook=_dump_model)))


def _dump_model(value: Any) -> str:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    raise TypeError(type(value))


def decode(content: bytes, type: Any) -> Any:
    """Return a value of a type. What was checked when it was read isn't checked again."""
    return msgpack.decode(content, type=type, dec_hook=_load_model)


def _load_model(type: Any, value: Any) -> Any:
    if issubclass(type, BaseModel):
        return type.model_validate_json(value, context=CHECKED)
    raise TypeError(type)


def too_much(name: str, seconds: float = SECONDS) -> ScenarioFileError:
    """Return the error of a file or an upload that took more."""
    what = f"It needs more than {seconds:g} s or {MEMORY_BYTES >> 20} MB to read."
    fix = "Split it, or make its files smaller."
    return _refuse(name, what, fix, "bundle/too-much-to-read")


def _refuse(name: str, what: str, fix: str, id: str) -> ScenarioFileError:
    return ScenarioFileError([Problem(file=name, line=1, where="", what=what, fix=fix, id=id)])


def answer_job(job: ReadingJob) -> ReadingAnswer:
    """Do a job and return its outcome."""
    module, _, name = job.reader.partition(":")
    file = ""
    try:
        reader = getattr(import_module(module), name)
        assert isinstance(reader, FileReader)  # noqa: S101 (evalhub names it)
        asked, answered = reader.types()
        arguments = decode(job.arguments, asked)
        file = arguments[0]
        result = encode(reader.function(*arguments))
        # What doesn't fit this process would fill the one that asks.
        decode(result, answered)
        return ReadingAnswer(result=msgspec.Raw(result))
    except ScenarioFileError as error:
        return ReadingAnswer(problems=list(error.problems))
    except RequestError as error:
        return ReadingAnswer(refusal=str(error))
    except (MemoryError, RecursionError):
        return ReadingAnswer(problems=list(too_much(file).problems))
    except OverflowError:
        refused = _refuse(
            file,
            "A whole number in it has more than 64 bits.",
            "Write it as text.",
            "bundle/large-number",
        )
        return ReadingAnswer(problems=list(refused.problems))
    except Exception:
        # Broad because who asked logs it, as if it had happened there.
        return ReadingAnswer(fault=traceback.format_exc())


def main(seconds: float, memory: int) -> None:
    """Answer jobs until standard input ends; each may take so much processor time and so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS has no such limit.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    # Ctrl-C is for the process that asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_runner(run_pattern)
    while job := receive_message(sys.stdin.buffer):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answered = encode(answer_job(msgpack.decode(job, type=ReadingJob)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(len(answered).to_bytes(4) + answered)
        sys.stdout.buffer.flush()
