"""What an agent does now: its last call and how many there were, while the rest of its stream is still to come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from evalhub.lib.limits import MOST_LINES
from evaluators.model import Event, Transcript
from evaluators.tool_use.calls import Call
from evaluators.transcripts import claude_code, codex, copilot_cli, events, gemini_cli, opencode, qwen_code
from evaluators.transcripts.reading import UnreadableTranscript

_READERS = {
    "events": events.parse,
    "codex": codex.parse,
    "claude_code": claude_code.parse,
    "opencode": opencode.parse,
    "gemini_cli": gemini_cli.parse,
    "qwen_code": qwen_code.parse,
    "copilot_cli": copilot_cli.parse,
}
"""Formats whose lines can be read one by one."""

MOST_CALLS = 10_000
"""Most calls that are counted: each id is kept in memory, so that no call is counted again."""


@dataclass(frozen=True)
class LatestCalls:
    """The agent's calls in a stream so far."""

    last: str = ""
    """The last call, empty if none: a shell command, or another tool's name with its input as JSON."""
    count: int | None = None
    """Number of calls; None before the first event, or if parts of the stream were missed."""
    exit_code: int | None = None
    """Exit code of the last call, 0 or 1 if only success is reported; None while it runs or if unknown."""


class CallsSoFar:
    """Reads a stream part by part. A format without one event a line yields no calls."""

    def __init__(self, parser: str) -> None:
        self._parse = _READERS.get(parser)
        self._last = ""
        self._call: Event | None = None
        self._exit_code: int | None = None
        self._nameless = 0
        """Calls without an id whose results are outstanding."""
        self._count = 0
        self._ids: set[str] = set()
        self._begun = False
        self._incomplete = False

    def read(self, lines: bytes, *, missed: bool = False) -> LatestCalls:
        """Read more lines and return the calls so far; `missed` means that lines before these were lost.

        Skips unreadable lines, such as one whose beginning is missing, and all before the last `MOST_LINES`.
        """
        if self._parse:
            parts = lines.rsplit(b"\n", MOST_LINES + 1)
            self._incomplete |= missed or len(parts) > MOST_LINES + 1
            for line in parts[-MOST_LINES - 1 :]:
                self._take(line, self._parse)
        known = self._begun and not self._incomplete and self._count <= MOST_CALLS
        return LatestCalls(self._last, self._count if known else None, self._exit_code)

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
                self._last = _call_text(event) or self._last
                self._call, self._exit_code = event, Call(0, event).exit_code
                self._nameless += event.id is None
                # Count a call once: some agents report it when it begins and again when it ends.
                if event.id is None:
                    self._count += 1
                elif self._count <= MOST_CALLS and event.id not in self._ids:
                    self._ids.add(event.id)
                    self._count += 1
            elif event.type in ("tool_result", "error") and self._call and self._ends(event, self._call):
                self._exit_code = Call(0, self._call, event).exit_code

    def _ends(self, result: Event, call: Event) -> bool:
        """Return whether a result belongs to the last call; without ids the first call gets the first result."""
        if call.id is not None or result.id is not None:
            return call.id == result.id
        if result.type == "error" or not self._nameless:
            return False
        self._nameless -= 1
        return not self._nameless and not self._incomplete


def _call_text(event: Event) -> str:
    if event.command is not None:
        return event.command
    arguments = event.input
    return f"{event.name or 'tool'} {'' if arguments is None else msgspec.json.encode(arguments).decode()}".rstrip()
