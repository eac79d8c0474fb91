"""`map_ahead`: a second process that computes a few values ahead, and is gone when nobody needs it any more."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tests.history.second_process import map_ahead

ROOT = Path(__file__).parents[2]
STARTED_AND_LEFT = """
import time
from tests.history.second_process import map_ahead
from tests.history.test_second_process import process_of
print(next(map_ahead(process_of, range(9), ahead=1)), flush=True)
time.sleep(60)
"""


def process_of(_: int) -> int:
    return os.getpid()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def is_gone(process: int, *, within_seconds: float) -> bool:
    until = time.monotonic() + within_seconds
    while is_alive(process) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_alive(process)


def value_and_process(value: int) -> tuple[int, int]:
    return value, os.getpid()


def test_results_come_in_order_from_one_other_process_which_ends_when_they_are_not_needed() -> None:
    values = count()
    with closing(map_ahead(value_and_process, values, ahead=5)) as results:
        found = [next(results) for _ in range(9)]
        assert [value for value, _ in found] == list(range(9))
        assert next(values) == 14, "only a few are taken ahead"
        (process,) = {process for _, process in found}
        assert process != os.getpid() and is_alive(process)
    assert not is_alive(process)


def test_an_error_is_raised_here() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(map_ahead(int, ("1", "one"), ahead=1))


def test_the_process_ends_when_the_first_one_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTED_AND_LEFT], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as first:
        assert first.stdout is not None
        second = int(first.stdout.readline())
        first.kill()
    assert is_gone(second, within_seconds=20)
