"""Limit the work that evalhub does on what an agent left."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 30.0
"""For each step: storing the workspace, cleaning Git settings, hashing what gates run."""


class TimeLeft:
    """The time of one step, which a cancelled trial ends, too."""

    def __init__(self, seconds: float = SECONDS, *, stopped: Callable[[], bool] = lambda: False) -> None:
        self._end = time.monotonic() + seconds
        self._stopped = stopped

    @property
    def is_up(self) -> bool:
        """Whether the step must end."""
        return time.monotonic() >= self._end or self._stopped()
