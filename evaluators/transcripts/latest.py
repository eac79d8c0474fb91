"""What an agent does now: its last call and how many there were, while the rest of its stream is still to come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from evaluators.calls import Call
from evaluators.model import Event, Transcript
from evaluators.transcripts import claude_code, codex, events, opencode
from evaluators.transcripts.reading import UnreadableTranscript

_READERS = {
    "events": events.parse,
    "codex": codex.parse,
    "claude_code": claude_code.parse,
    "opencode": opencode.parse,
}
"""Those whose lines can be read one by one."""

MOST_LINES = 2000
"""Lines at the end of a part that are looked at: a flood of others is not worth the processor's time."""
MOST_CALLS = 10_000
"""Calls beyond which they are not counted any more: each is remembered, lest it be counted twice."""


@dataclass(frozen=True)
class CallsTold:
    """What a stream has told of its agent's calls so far."""

    last: str = ""
    """The last one, empty for none: a shell's command, or another tool's name with what it was given as JSON."""
    count: int | None = None
    """How many there were; None where nothing was told yet, or not everything was seen."""
    exit_code: int | None = None
    """What the last one came to, 0 or 1 where only success is told; None while it runs, and where nobody tells."""


class CallsSoFar:
    """Reads a stream part by part. A format that does not have its events in lines tells of no calls."""

    def __init__(self, parser: str) -> None:
        self._read = _READERS.get(parser)
        self._last = ""
        self._call: Event | None = None
        self._exit_code: int | None = None
        self._nameless = 0
        """Calls without an id whose results were not told yet."""
        self._count = 0
        self._ids: set[str] = set()
        self._begun = False
        self._incomplete = False

    def told(self, lines: bytes, *, missed: bool = False) -> CallsTold:
        """Return what is known after some more lines; `missed` says that others between were never given.

        Lines that cannot be read, such as one whose beginning is missing, are passed over, and so are all
        before the last `MOST_LINES`.
        """
        if self._read:
            parts = lines.rsplit(b"\n", MOST_LINES + 1)
            self._incomplete |= missed or len(parts) > MOST_LINES + 1
            for line in parts[-MOST_LINES - 1 :]:
                self._take(line, self._read)
        known = self._begun and not self._incomplete and self._count <= MOST_CALLS
        return CallsTold(self._last, self._count if known else None, self._exit_code)

    def _take(self, line: bytes, read: Callable[[bytes], Transcript]) -> None:
        if not line.strip():
            return
        try:
            events = read(line).events
        except UnreadableTranscript:
            return
        self._begun = True
        for event in events:
            if event.type == "tool_call":
                self._last = _said(event) or self._last
                self._call, self._exit_code = event, Call(0, event).exit_code
                self._nameless += event.id is None
                self._count_call(event.id)
            elif event.type in ("tool_result", "error") and self._call and self._ends(event, self._call):
                self._exit_code = Call(0, self._call, event).exit_code

    def _ends(self, result: Event, call: Event) -> bool:
        """Tell whether a result is that of the last call; without ids the first call gets the first result."""
        if call.id is not None or result.id is not None:
            return call.id == result.id
        if result.type == "error" or not self._nameless:
            return False
        self._nameless -= 1
        return not self._nameless and not self._incomplete

    def _count_call(self, id: str | None) -> None:
        """Count a call once, though some agents tell of it when it begins and when it ends."""
        if id is None:
            self._count += 1
        elif self._count <= MOST_CALLS and id not in self._ids:
            self._ids.add(id)
            self._count += 1


def _said(event: Event) -> str:
    if event.command is not None:
        return event.command
    given = event.input
    return f"{event.name or 'tool'} {'' if given is None else msgspec.json.encode(given).decode()}".rstrip()
