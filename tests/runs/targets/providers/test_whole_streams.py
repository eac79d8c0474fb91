"""A stream arrives whole from programs that write without waiting and exit, as those of Node.js do."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from runs.sandbox.process import ProcessResult, run_process

SIZE = 5_000_000
WRITER = f"""
import os, time
os.set_blocking(1, False)
os.write(1, b'{{"type":"init"}}\\n')
until = time.monotonic() + 20
while not os.get_blocking(1) and time.monotonic() < until:
    time.sleep(0.005)
rest = memoryview(b"y" * {SIZE} + b'\\n{{"type":"result"}}\\n')
while rest:
    try:
        rest = rest[os.write(1, rest):]
    except BlockingIOError:
        os._exit(0)
"""
"""Loses what its reader has not taken, unless its output waits."""


class SlowReader:
    """Takes a while for each part of an output."""

    def take(self, stream: str, chunk: bytes) -> None:
        time.sleep(0.002)


def print_stream(argv: list[str], folder: Path) -> ProcessResult:
    return run_process(argv, cwd=folder, env={}, timeout_seconds=60, stdout_socket=True, sinks=[SlowReader()])


def test_a_writer_waits_for_its_reader(tmp_path: Path) -> None:
    result = print_stream([sys.executable, "-c", WRITER], tmp_path)
    assert (result.exit_code, len(result.stdout)) == (0, len('{"type":"init"}\n') + SIZE + 1 + 18)
    assert result.stdout.endswith(b'\n{"type":"result"}\n')


def test_the_output_of_a_process_ends_with_it(tmp_path: Path) -> None:
    """The worker holds the writing end, too."""
    began = time.monotonic()
    result = print_stream(["/bin/sh", "-c", "echo all; exec 1>&-; true"], tmp_path)
    assert (result.stdout, result.exit_code) == (b"all\n", 0)
    assert time.monotonic() - began < 20
