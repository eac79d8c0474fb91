"""Tool calls with their results, whoever recorded them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaluators.model import Event


class Call(Struct, gc=False):
    """A tool call and what came of it."""

    index: int
    """Of the tool_call in the transcript's events."""
    event: Event
    result: Event | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code, 0 or 1 where only success is told, None where nothing is."""
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
    pending: dict[str | int, Call] = {}
    for index, event in enumerate(events):
        kind = event.type
        if kind == "tool_call":
            call = Call(index, event)
            found.append(call)
            pending[event.id or index] = call
        elif kind == "tool_result" or (kind == "error" and event.id in pending):
            key: str | int | None = event.id
            if key is None or key not in pending:
                key = _other_key(event, pending)
            if key is not None:
                pending.pop(key).result = event
    return found


def _other_key(result: Event, pending: dict[str | int, Call]) -> str | int | None:
    """Return the key of the call that a result belongs to whose id none has; None when there is none."""
    if result.id is None:
        return next(iter(pending), None)
    # The calls may be recorded without the ids that their results have.
    return next((key for key in pending if isinstance(key, int)), None)
