"""Streams whose tool calls their reader does not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evaluators.model import Event
from evaluators.transcripts.reading import NoKnownEvents, shown_kinds

_CALL = re.compile(r"tool|function|call|command", re.IGNORECASE)


def refuse_unread_calls(events: Sequence[Event], what: str, passing: Iterable[str] = ()) -> None:
    """Raise `NoKnownEvents` if no event is a call and unknown ones look like calls.

    Gates on the commands would pass because there are none. `passing` are names of events that are no calls.
    """
    if any(event.type == "tool_call" for event in events):
        return
    unknown = {event.name or "" for event in events if event.type == "raw"}
    suspects = {name for name in unknown.difference(passing) if _CALL.search(name)}
    if suspects:
        raise NoKnownEvents(
            f"The output is no {what}: it has events that look like tool calls and can't be read as such "
            f"({shown_kinds(suspects)}). Choose the parser that fits it."
        )
