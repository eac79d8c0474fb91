"""Pair tool calls with their results, and say when they ran."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from evaluators.model import Event, NotRun

MCP_MARK = "mcp"
"""The key in a call's metadata under which `mcp_calls.mark_calls` stores what it found of a call of an MCP server."""


SKILL_MARK = "skill"
"""The key in a call's metadata with the name of the skill that the agent used in it, as its recorder states."""


class Call(Struct, gc=False):
    """A tool call and its result."""

    index: int
    """Index of the tool_call in the transcript's events."""
    event: Event
    result: Event | None = None

    @property
    def not_run(self) -> NotRun:
        """Why the call never ran; empty for one that ran."""
        return self.event.not_run or (self.result.not_run if self.result else "")

    @property
    def exit_code(self) -> int | None:
        """The exit code; 0 or 1 if only success is recorded, None if nothing is or if the call never ran."""
        call, result = self.event, self.result
        if self.not_run:
            return None
        if result is None:
            return _code(call)
        if (code := result.exit_code) is None:
            code = _code(call) if result.success is None else int(not result.success)
        return 1 if code is None and result.type == "error" else code

    def times(self) -> tuple[float | None, float | None]:
        """Return when it began, in seconds since 1970, and how many seconds it took; None for what is not known.

        What its recorder says of its length counts before the timestamps of the call and its result.
        """
        call, result = self.event, self.result
        began = epoch_seconds(call.timestamp)
        ended = epoch_seconds(result.timestamp) if result else None
        seconds = call.seconds if call.seconds is not None or result is None else result.seconds
        if began is None:
            return (None if ended is None or seconds is None else ended - seconds), seconds
        if seconds is None and ended is not None:
            seconds = max(0.0, ended - began)
        return began, seconds


_LATEST = 1e11
"""Later numbers are milliseconds: as seconds, it is the year 5138."""


def epoch_seconds(timestamp: str | None) -> float | None:
    """Return an event's timestamp in seconds since 1970; None for a missing or unreadable one.

    It is ISO 8601, in UTC where it has no offset, or a number of seconds or milliseconds.
    """
    if not timestamp:
        return None
    try:
        if timestamp[4:5] == "-":
            moment = datetime.fromisoformat(timestamp.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        number = float(timestamp)
    except (ValueError, OverflowError):
        return None
    if not 0 <= number < _LATEST * 1000:
        return None
    return number / 1000 if number > _LATEST else number


def _code(event: Event) -> int | None:
    if event.exit_code is not None or event.success is None:
        return event.exit_code
    return int(not event.success)


def pair_calls(events: Sequence[Event]) -> list[Call]:
    """Return the tool calls in order, paired with their results by id, else first in, first out."""
    all_calls: list[Call] = []
    pending = _Pending()
    for index, event in enumerate(events):
        kind = event.type
        if kind == "tool_call":
            call = Call(index, event)
            all_calls.append(call)
            pending.add(call)
        elif kind == "tool_result" or kind == "error":
            paired = pending.take(event)
            if paired is not None:
                paired.result = event
    return all_calls


class _Pending:
    """The calls without a result yet. Taking the first is fast, because an agent can write any number of calls."""

    def __init__(self) -> None:
        # A plain dict would skip all removed keys to find its first.
        self._calls: OrderedDict[str | int, Call] = OrderedDict()
        self._without_id: deque[int] = deque()

    def add(self, call: Call) -> None:
        """Add a call under its id, or under its index if it has none."""
        if not call.event.id:
            self._without_id.append(call.index)
        self._calls[call.event.id or call.index] = call

    def take(self, result: Event) -> Call | None:
        """Remove and return the call of a result or an error; None if there is none."""
        paired = None if result.id is None else self._calls.pop(result.id, None)
        if paired is None and result.type == "tool_result":
            return self._first() if result.id is None else self._first_without_id()
        return paired

    def _first(self) -> Call | None:
        return self._calls.popitem(last=False)[1] if self._calls else None

    def _first_without_id(self) -> Call | None:
        # Some recorders give ids to results only.
        while self._without_id:
            if call := self._calls.pop(self._without_id.popleft(), None):
                return call
        return None
