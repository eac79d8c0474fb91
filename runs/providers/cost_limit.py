"""Stop an agent whose stream reports a higher cost than its trial may have."""

from __future__ import annotations

import time
from typing import Literal

from evalhub.web.numbers import money
from evaluators.model import Price
from evaluators.transcripts import UnreadableTranscript, parse
from runs.providers.prices import cost_of

EVERY_SECONDS = 1.0
_TELLING = (b"cost", b"usage", b"tokens")
"""Words of the lines that report a cost or tokens; other lines are not read."""


class CostLimit:
    """Reads what a stream reports so far: its cost, else its tokens by the model's price."""

    def __init__(self, parser: str, max_usd: float, price: Price | None) -> None:
        self._parser, self._max_usd, self._price = parser, max_usd, price
        self._rest, self._lines = b"", bytearray()
        self._read, self._looked = 0, 0.0
        self.is_exceeded = False

    def take(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        """Keep the lines that report something."""
        if stream == "stdout":
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                if any(word in line for word in _TELLING):
                    self._lines += line + b"\n"

    def reached(self) -> bool:
        """Return whether the agent has cost more; reads at most once a second."""
        due = time.monotonic() - self._looked >= EVERY_SECONDS
        if not self.is_exceeded and due and len(self._lines) > self._read:
            self._looked, self._read = time.monotonic(), len(self._lines)
            cost = self._cost()
            self.is_exceeded = cost is not None and cost > self._max_usd
        return self.is_exceeded

    @property
    def note(self) -> str:
        """What happened, for the trial; empty if it did not cost more."""
        sentence = f"The agent was stopped: it cost more than {money(self._max_usd)} (cost.max_usd)."
        return sentence if self.is_exceeded else ""

    def _cost(self) -> float | None:
        try:
            found = parse(self._parser, bytes(self._lines))
        except UnreadableTranscript:
            return None
        if found.cost_usd is not None:
            return found.cost_usd
        return cost_of(found.usage, self._price) if found.usage and self._price else None
