"""Compare the processor time for an input with that for four times as much of it.

Bounds in seconds fail on a busy machine and pass what is slow on a fast one; the ratio of two times of one process
does neither. Linear work takes 4 times as long, quadratic work 16 times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")

MOST = 9.0
"""How many times as long four times the input may take: n·log n takes about 5 times as long."""
FLOOR = 0.05
"""Seconds: what ends sooner is quick enough, however it grows."""
TURNS = 3


def assert_linear_time(act: Callable[[Input], object], small: Input, large: Input) -> None:
    """Fail if `act` takes more than linear time; `large` is four times `small`.

    The quickest of several turns counts on either side, because other processes, garbage collections and a first
    turn's imports only add time. `act` is called several times with each input.
    """
    smalls, larges = [processor_seconds(act, small)], []
    for _ in range(TURNS):
        smalls.append(processor_seconds(act, small))
        larges.append(processor_seconds(act, large))
        if min(larges) < max(FLOOR, MOST * min(smalls)):
            return
    raise AssertionError(
        f"Four times the input took {min(larges):.3f} s instead of {min(smalls):.3f} s, "
        f"{min(larges) / min(smalls):.1f} times as long; {MOST:g} times is allowed."
    )


def processor_seconds(act: Callable[[Input], object], given: Input) -> float:
    """Return the processor time that this thread takes for `act`."""
    began = time.thread_time()
    act(given)
    return time.thread_time() - began


def quarter(text: str) -> str:
    """Return the first and the last eighth of a text, which begin and end it as before."""
    eighth = len(text) // 8
    return text[:eighth] + text[-eighth:]
