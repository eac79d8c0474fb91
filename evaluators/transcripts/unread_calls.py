"""Streams whose tool calls their reader does not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from evaluators.model import Event, Json
from evaluators.transcripts.reading import NoKnownEvents, shown_kinds

_INNER = ("item", "payload", "part")
"""Where Codex, its session files and opencode have what happened."""
_CALL = re.compile(r"tool|function|call|command", re.IGNORECASE)


def refuse_unread_calls(events: Sequence[Event], what: str, passing: Iterable[str] = ()) -> None:
    """Raise `NoKnownEvents` if no event is a call and unknown ones look like calls.

    Gates on the commands would pass because there are none. `passing` are names of events that aren't calls.
    """
    if any(event.type == "tool_call" for event in events):
        return
    apart = frozenset(passing)
    unknown = [event for event in events if event.type == "raw" and event.name not in apart]
    suspects = {kind for event in unknown for kind in _kinds(event) if _CALL.search(kind)}
    if suspects:
        raise NoKnownEvents(
            f"The output isn't a {what}: it has events that look like tool calls and can't be read as such "
            f"({shown_kinds(suspects)}). Choose the parser that fits it."
        )


def _kinds(event: Event) -> Iterator[str]:
    """Yield the type of an unknown event, and those of what other programs' events hold."""
    yield event.name or ""
    held = event.metadata
    yield from (_type(held.get(name)) for name in _INNER)
    message = held.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        yield from map(_type, content)


def _type(value: Json) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""
