"""Wait until something is true: the only clock that a test watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 4
"""How many times longer than usual a test waits before it fails: many tests share few processors."""


def until(ready: Callable[[], T], seconds: float = 15.0, output: Callable[[], str] = str) -> T:
    """Return the first true answer; `seconds` is what it takes when nothing else runs.

    Raises `AssertionError`, with what `output` returns, if there is none in `PATIENCE` times as long.
    """
    end = time.monotonic() + PATIENCE * seconds
    while not (answer := ready()):
        assert time.monotonic() < end, f"It did not become true within {PATIENCE * seconds:g} s. {output()}"
        time.sleep(0.05)
    return answer
