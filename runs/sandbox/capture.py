"""Keep the head and tail of an output of any length."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Capture:
    """Captured bytes; past `limit` the middle is dropped."""

    limit: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        """Append bytes."""
        self.total += len(chunk)
        room = self.limit - self.limit // 2 - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Trimmed only now and then: cutting a bytearray for every chunk would copy it for every chunk.
        if len(self._tail) > self.limit + 65536:
            self._trim()

    @property
    def truncated(self) -> bool:
        """Whether the middle was dropped."""
        return self.total > self.limit

    def content(self) -> bytes:
        """The captured bytes; a line states how much was dropped."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        self._trim()
        missing = self.total - len(self._head) - len(self._tail)
        return bytes(self._head) + b"\n[... %d bytes left out ...]\n" % missing + bytes(self._tail)

    def _trim(self) -> None:
        keep = self.limit // 2
        del self._tail[: max(0, len(self._tail) - keep)]
