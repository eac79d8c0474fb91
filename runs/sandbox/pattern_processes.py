"""Run regular expressions in helper processes that are killed at their time limit."""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import msgpack

from evaluators.patterns import Engine, PatternAnswer

HELPER = Path(__file__).with_name("pattern_helper.py")
MOST = 4
"""Processes at once, each of 30 MB."""
PATIENCE = 5.0
"""Seconds to wait for a free process, and for its answer: several times its processor time, for a busy machine."""

_Decoded = tuple[tuple[int, int, int, int] | None, float, str, str]
_decoder = msgpack.Decoder(_Decoded)


class PatternProcesses:
    """A pool of at most `MOST` helpers."""

    def __init__(self) -> None:
        self._forget()
        atexit.register(self.close)
        # A forked process needs its own helpers: two readers of one pipe would mix up answers.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._free = threading.BoundedSemaphore(MOST)
        self.idle: list[subprocess.Popen[bytes]] = []

    def __call__(self, engine: Engine, source: str, text: str | None, seconds: float) -> PatternAnswer:
        """Return a helper's answer within so many seconds of processor time."""
        if not self._free.acquire(timeout=PATIENCE):
            return PatternAnswer(stopped="all pattern processes are busy. Try again in a minute.")
        try:
            with self._helper() as helper:
                return _send(helper, msgpack.encode((engine, source, text, seconds)), seconds)
        finally:
            self._free.release()

    @contextmanager
    def _helper(self) -> Iterator[subprocess.Popen[bytes]]:
        helper = self.idle.pop() if self.idle else None
        if helper is not None and helper.poll() is not None:
            _end(helper)
            helper = None
        helper = helper or _start()
        try:
            yield helper
        except BaseException:
            _end(helper)
            raise
        if helper.returncode is None:
            self.idle.append(helper)

    def close(self) -> None:
        """End the idle helpers."""
        while self.idle:
            _end(self.idle.pop())


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", str(HELPER)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env={}, start_new_session=True
    )


def _end(helper: subprocess.Popen[bytes]) -> None:
    helper.kill()
    helper.wait()
    for stream in (helper.stdin, helper.stdout):
        if stream:
            stream.close()


def _send(helper: subprocess.Popen[bytes], job: bytes, seconds: float) -> PatternAnswer:
    """Return the answer; kill the helper if there is none."""
    assert helper.stdin and helper.stdout  # noqa: S101 (both are pipes)
    try:
        helper.stdin.write(len(job).to_bytes(4) + job)
        helper.stdin.flush()
        spans, used, invalid, stopped = _decoder.decode(_message(helper.stdout.fileno()))
    except (EOFError, OSError, TimeoutError, msgspec.DecodeError):
        _end(helper)
        advice = "Write it without nested repetition."
        return PatternAnswer(seconds=seconds, stopped=f"it took longer than {seconds:.2g} s. {advice}")
    return PatternAnswer(spans, used, invalid, stopped)


def _message(descriptor: int) -> bytes:
    until = time.monotonic() + PATIENCE
    length = int.from_bytes(_read(descriptor, 4, until))
    return _read(descriptor, length, until)


def _read(descriptor: int, length: int, until: float) -> bytes:
    """Return exactly so many bytes. Raises `EOFError` and `TimeoutError`."""
    found = bytearray()
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while len(found) < length:
        if not waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            raise TimeoutError
        part = os.read(descriptor, length - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


run_pattern = PatternProcesses()
"""The helpers of this process."""
