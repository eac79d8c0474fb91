"""Match patterns in a helper process: read jobs from standard input, write answers to standard output.

It doesn't import evalhub. Each message is a length of four bytes and MessagePack. A job is
`(engine, source, text or None, seconds)`, an answer `(spans or None, seconds, what is wrong with the pattern, why it gave
up)`, with the spans of the match and of the group that `sub_span` chooses, -1 for none.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
from contextlib import suppress
from functools import lru_cache
from typing import Any, BinaryIO

import re2
import regex
from msgspec import msgpack

Answer = tuple[tuple[int, int, int, int] | None, float, str, str]

MEMORY = 1 << 30
"""Address space in bytes: a text of 64 MB and a search's working memory."""

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=32)
def compile_for_search(engine: str, source: str) -> Any:
    """Return the compiled pattern; in the `regex` engine, classes such as \\d are of ASCII as in RE2."""
    return re2.compile(source, _OPTIONS) if engine == "re2" else regex.compile(source, regex.ASCII)


def run_search(engine: str, source: str, text: str | None) -> Answer:
    """Compile, then search where there is a text."""
    began = time.process_time()
    try:
        pattern = compile_for_search(engine, source)
        match = None if text is None else pattern.search(text)
    except (regex.error, re2.error, OverflowError) as error:
        return None, 0.0, str(error) or "it is too large", ""
    except RecursionError:
        return None, 0.0, "it is nested too deep", ""
    except MemoryError:
        return None, time.process_time() - began, "", "it needs too much memory."
    spans = None if match is None else (*match.span(), *sub_span(match))
    return spans, time.process_time() - began, "", ""


def sub_span(match: Any) -> tuple[int, int]:
    """Return where the group named `sub` matched, else the last group."""
    number = match.re.groupindex.get("sub", match.re.groups)
    span: tuple[int, int] = match.span(number) if number else (-1, -1)
    return span


def receive_message(stream: BinaryIO) -> bytes:
    """Return the next message, empty at the end."""
    head = stream.read(4)
    return stream.read(int.from_bytes(head)) if len(head) == 4 else b""


def main() -> None:
    """Answer until standard input ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS has no such limit.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Ctrl-C is for the process that asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while job := receive_message(sys.stdin.buffer):
        engine, source, text, seconds = msgpack.decode(job, type=tuple[str, str, str | None, float])
        # The kernel ends this process when the time is up, whatever the engine is doing.
        signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.01))
        answered = msgpack.encode(run_search(engine, source, text))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(len(answered).to_bytes(4) + answered)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
