"""How much of a processor the threads of this process use."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

SAMPLES = 16
BUSY = 0.75
"""Share of the time from which another thread would only slow down the others: they share one interpreter."""


def _sample() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


class ProcessorUse:
    """The use of a processor over the last `SAMPLES` calls of `is_busy`.

    `sample` returns the time and the processor time used by then, in seconds.
    """

    def __init__(self, sample: Callable[[], tuple[float, float]] = _sample) -> None:
        self._sample = sample
        self._samples = deque([sample()], SAMPLES)

    def is_busy(self) -> bool:
        """Return whether the threads used a processor nearly all the time."""
        self._samples.append(self._sample())
        (began, before), (now, after) = self._samples[0], self._samples[-1]
        return after - before > BUSY * (now - began)
