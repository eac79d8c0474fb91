"""Pair tool calls with their results."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaluators.model import Event


class Call(Struct, gc=False):
    """A tool call and its result."""

    index: int
    """Index of the tool_call in the transcript's events."""
    event: Event
    result: Event | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code; 0 or 1 if only success is recorded, None if nothing is."""
        call, result = self.event, self.result
        if result is None:
            return _code(call)
        if (code := result.exit_code) is None:
            code = _code(call) if result.success is None else int(not result.success)
        return 1 if code is None and result.type == "error" else code


def _code(event: Event) -> int | None:
    if event.exit_code is not None or event.success is None:
        return event.exit_code
    return int(not event.success)


def calls(events: Sequence[Event]) -> list[Call]:
    """Return the tool calls in order, paired with their results by id, else first in, first out."""
    found: list[Call] = []
    pending: dict[str | int | None, Call] = {}
    for index, event in enumerate(events):
        kind = event.type
        if kind == "tool_call":
            call = Call(index, event)
            found.append(call)
            pending[event.id or index] = call
        elif kind == "tool_result" or kind == "error":
            # No call is pending under None.
            paired = pending.pop(event.id, None)
            if paired is None and kind == "tool_result":
                paired = _unmatched_call(event, pending)
            if paired is not None:
                paired.result = event
    return found


def _unmatched_call(result: Event, pending: dict[str | int | None, Call]) -> Call | None:
    """Remove and return the pending call for a result without a matching id."""
    if result.id is None:
        key = next(iter(pending), None)
    else:
        # Some recorders give ids to results only.
        key = next((key for key in pending if isinstance(key, int)), None)
    return None if key is None else pending.pop(key)
