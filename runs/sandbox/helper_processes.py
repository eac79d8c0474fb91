"""Processes that do one job after another for this one, and are killed when a job takes too long or too much."""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

HELPER_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""The complete environment of each helper."""


class HelpersBusy(Exception):
    """No process became free in time."""


class HelperEnded(Exception):
    """The process ended, or was killed, before it answered."""


class HelperProcesses:
    """A pool of at most `most` processes of a program that reads jobs from its input and writes answers to its output.

    Each message is a length of four bytes and that many bytes. The program ends by itself at the end of its input. It
    gets no variables but those of `environment`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        most: int,
        wait: float,
        patience: float,
        environment: dict[str, str] | None = None,
    ) -> None:
        """`wait` is how many seconds to wait for a free process, `patience` for its answer."""
        self._command = list(command)
        self._most = most
        self._wait = wait
        self._patience = patience
        self._environment = environment or {}
        self._forget()
        atexit.register(self.close)
        # A forked process needs its own helpers: two readers of one pipe would mix up answers.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._free = threading.BoundedSemaphore(self._most)
        self.idle: list[subprocess.Popen[bytes]] = []

    def ask(self, job: bytes, most: int | None = None) -> bytes:
        """Return the answer to a job. Raises `HelpersBusy`, and `HelperEnded` also for an answer of more than `most` bytes."""
        if not self._free.acquire(timeout=self._wait):
            raise HelpersBusy
        try:
            with self._helper() as helper:
                return self._send(helper, job, most)
        finally:
            self._free.release()

    @contextmanager
    def _helper(self) -> Iterator[subprocess.Popen[bytes]]:
        helper = self.idle.pop() if self.idle else None
        if helper is not None and helper.poll() is not None:
            _end(helper)
            helper = None
        helper = helper or self._start()
        try:
            yield helper
        except BaseException:
            _end(helper)
            raise
        self.idle.append(helper)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            env=self._environment,
            start_new_session=True,
        )

    def _send(self, helper: subprocess.Popen[bytes], job: bytes, most: int | None) -> bytes:
        assert helper.stdin and helper.stdout  # noqa: S101 (both are pipes)
        try:
            helper.stdin.write(len(job).to_bytes(4) + job)
            helper.stdin.flush()
            until = time.monotonic() + self._patience
            descriptor = helper.stdout.fileno()
            length = int.from_bytes(_read(descriptor, 4, until))
            if most is not None and length > most:
                raise HelperEnded
            return _read(descriptor, length, until)
        except (EOFError, OSError, TimeoutError) as error:
            raise HelperEnded from error

    def close(self) -> None:
        """End the idle helpers."""
        while self.idle:
            _end(self.idle.pop())


def _end(helper: subprocess.Popen[bytes]) -> None:
    helper.kill()
    helper.wait()
    for stream in (helper.stdin, helper.stdout):
        if stream:
            stream.close()


def _read(descriptor: int, length: int, until: float) -> bytes:
    """Return exactly this many bytes. Raises `EOFError` and `TimeoutError`."""
    content = bytearray()
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while len(content) < length:
        if not waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            raise TimeoutError
        part = os.read(descriptor, length - len(content))
        if not part:
            raise EOFError
        content += part
    return bytes(content)


def memory_file(content: bytes) -> BinaryIO:
    """Return an anonymous file, positioned at its start."""
    file = os.fdopen(os.memfd_create("evalhub"), "w+b")
    file.write(content)
    file.seek(0)
    return file
