"""What `opencode export SESSION` prints: one JSON object with the session's messages and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from msgspec import structs

from evaluators.model import Event
from evaluators.transcripts.opencode import call_events, read_opencode_usage, sum_costs
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    UnreadableSession,
    keep_whole,
    only_session,
    span_of,
    whole_json,
)
from evaluators.transcripts.stream import (
    Object,
    format_milliseconds,
    make_transcript,
    mapping_or_empty,
    text_or_none,
)


def matches(value: Object) -> bool:
    """Return whether an object is an export of opencode."""
    return "id" in mapping_or_empty(value.get("info")) and isinstance(value.get("messages"), list)


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the file's session."""
    value = mapping_or_empty(whole_json(file))
    messages = value.get("messages")
    if not isinstance(messages, list):
        raise UnreadableSession("No `messages` found. Export the session with `opencode export`.")
    infos = [mapping_or_empty(mapping_or_empty(message).get("info")) for message in messages]
    events = [event for message in messages for event in _turn(mapping_or_empty(message))]
    answered = [info for info in infos if info.get("role") == "assistant"]
    read = make_transcript(
        events,
        usage=read_opencode_usage([mapping_or_empty(info.get("tokens")) for info in answered])
        if answered
        else None,
        cost_usd=sum_costs([info.get("cost") for info in answered]),
    )
    model = next((text_or_none(info.get("modelID")) or "" for info in reversed(answered)), "")
    times = span_of(event.timestamp for event in events)
    id = text_or_none(mapping_or_empty(value.get("info")).get("id")) or ""
    return only_session(Session(id, read, model, *times), "opencode")


def _turn(message: Object) -> list[Event]:
    """Return a message's events; the first has its usage."""
    events, tokens = (
        list(_events(message)),
        mapping_or_empty(mapping_or_empty(message.get("info")).get("tokens")),
    )
    if events and tokens:
        events[0] = structs.replace(events[0], usage=read_opencode_usage([tokens]))
    return events


def _events(message: Object) -> Iterator[Event]:
    info, parts = mapping_or_empty(message.get("info")), message.get("parts")
    time = format_milliseconds(mapping_or_empty(info.get("time")).get("created"))
    for part in map(mapping_or_empty, parts if isinstance(parts, list) else ()):
        kind = part.get("type")
        if kind == "text" and not part.get("synthetic"):
            role = text_or_none(info.get("role")) or "assistant"
            yield Event("message", role=role, text=text_or_none(part.get("text")), timestamp=time)
        elif kind == "reasoning":
            yield Event("model_step", name=kind, text=text_or_none(part.get("text")), timestamp=time)
        elif kind == "tool":
            yield from call_events(part)
