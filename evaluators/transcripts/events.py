"""Structured events, one JSON object a line (`events.jsonl` of llm-tool-test).

Two families are read: those that say `event` what they are (spawn, output, tool_call, tool_result,
complete) and those that say `type` (setup_command, execution, post_script, and the types of `Event`).
"""

from __future__ import annotations

import io

import msgspec

from evaluators.model import Event, Transcript
from evaluators.transcripts.event_lines import BY_EVENT, BY_TYPE, MAKERS, AnyLine
from evaluators.transcripts.reading import UnreadableTranscript, as_text, line_problems, no_events
from evaluators.transcripts.stream import refuse_unread_calls

_KNOWN_RAW = frozenset(("spawn", "complete", "setup_command", "execution", "post_script"))

_decode = msgspec.json.Decoder(AnyLine).decode
_decode_any = msgspec.json.Decoder().decode


def parse(raw: bytes) -> Transcript:
    """Return the events of JSON lines. Lines that aren't events are reported as a problem.

    Raises `UnreadableTranscript` when there are lines and none of them is an event of a known type.
    """
    events: list[Event] = []
    others: list[Event] = []
    bad: list[int] = []
    # A log is of one family; lines of the other one are read all the same, and take longer.
    family = BY_EVENT if b'"event"' in raw[: raw.find(b"\n")] else BY_TYPE
    decode, makers = family.decode, family.makers
    # One line at a time: a list of all lines would cost more than decoding them.
    for number, line in enumerate(io.BytesIO(raw), start=1):
        try:
            known = decode(line)
            events.append(makers[type(known)](known))
        except (ValueError, RecursionError):
            other = _other(line)
            if other is not None:
                events.append(other)
                others.append(other)
            elif line.strip():
                bad.append(number)
    if bad and not events:
        raise UnreadableTranscript(
            "None of the lines is a JSON object. Choose the parser that fits the agent's output."
        )
    # A line of a known kind whose fields are not as they should be is still one of such a log.
    if events and all(_is_unknown(event) and event.name not in MAKERS for event in events):
        raise no_events("log of structured events", (event.name or "" for event in events))
    refuse_unread_calls(events, "log of structured events", passing=_KNOWN_RAW | MAKERS.keys())
    calling = any(event.type == "tool_call" for event in events)
    messages = (event.text for event in reversed(events) if event.type == "message" and event.role != "user")
    return Transcript(
        events=tuple(events),
        source="events" if events else "none",
        # Only without calls is anything sought in the text.
        text="" if calling else "\n".join(event.text for event in events if event.text),
        answer=next((text.strip() for text in messages if text), ""),
        problems=line_problems(bad, "aren't events"),
        unknown_events=sum(map(_is_unknown, others)),
    )


def holds_call(transcript: Transcript) -> bool:
    """Return whether the events contain a tool call."""
    return any(event.type == "tool_call" for event in transcript.events)


def _other(line: bytes) -> Event | None:
    """Return the event of a line that is not of its log's family or of no known kind, or None."""
    try:
        return _event(_decode(line), line)
    except (ValueError, RecursionError):
        return _second_try(line)


def _event(line: AnyLine, source: bytes | str) -> Event:
    kind = line.event or line.type
    if kind is not None and (maker := MAKERS.get(kind)):
        return maker(line)
    # An `execution` event holds a transcript.
    text = line.output if line.type == "execution" and isinstance(line.output, str) else None
    key = str(line.id) if isinstance(line.id, int) else line.id
    return Event("raw", key, kind, text=text, exit_code=line.exit_code, metadata=_decode_any(source))


def _second_try(line: bytes) -> Event | None:
    """Return the event of a line that is not UTF-8 or has a field of an unexpected type, or None."""
    text = as_text(line)
    try:
        value = _decode_any(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    try:
        return _event(_decode(text), text)
    except ValueError:
        return Event("raw", name=str(value.get("type") or value.get("event") or ""), metadata=value)


def _is_unknown(event: Event) -> bool:
    return event.type == "raw" and event.name not in _KNOWN_RAW
