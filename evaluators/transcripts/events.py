"""Structured events, one JSON object a line (`events.jsonl` of llm-tool-test).

Reads two families of lines: those whose kind is in `event` (spawn, output, tool_call, tool_result, complete) and
those whose kind is in `type` (setup_command, execution, post_script, and the types of `Event`).

This runs for every line of a log that may be very long. So a line of a known kind is decoded into its own type,
and one function with positional arguments turns it into an event; each makes texts of key and moment itself,
because a shared function for both would take a ninth of the instructions.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from evaluators.model import Event, EventType, Json, Transcript, Usage
from evaluators.transcripts.reading import UnreadableTranscript, as_text, line_problems, no_events
from evaluators.transcripts.stream import refuse_unread_calls
from evaluators.transcripts.traces import not_run, shell_command

NO_METADATA: dict[str, Json] = {}
"""Shared: a dictionary for each of a long log's events has the garbage collector look through them again and again."""


class EventFields(Struct, gc=False):
    """The fields of an event that mean something here; others are passed over."""

    id: str | int | None = None
    tool: str | None = None
    name: str | None = None
    command: Json = None
    input: Json = None
    arguments: Json = None
    """What many agents call the input of a call."""
    role: str | None = None
    exit_code: int | None = None
    success: bool | None = None
    output: Json = None
    text: str | None = None
    ts: str | float | None = None
    timestamp: str | float | None = None
    duration_ms: float | None = None
    error: Json = None
    usage: Json = None
    not_run: Json = None


class AnyLine(EventFields, gc=False):
    """A line of either family, and of any kind."""

    event: str | None = None
    type: str | None = None


class _ByEvent(EventFields, gc=False):
    """A line that says `event` what it is; its type may be anything that a type may be."""

    type: str | None = None


class _ByType(EventFields, gc=False):
    """A line that says `type` what it is; an event would say otherwise."""

    event: None = None


def _key_and_time(line: EventFields) -> tuple[str | None, str | None]:
    key, at = line.id, line.ts if line.timestamp is None else line.timestamp
    return None if key is None else str(key), None if at is None else str(at)


def _tool_call(line: EventFields) -> Event:
    key, at = _key_and_time(line)
    name, command = line.tool or line.name, line.command
    arguments = line.arguments if line.input is None else line.input
    if not isinstance(command, str):
        command = shell_command(name, arguments)
    if (usage := line.usage) is not None:
        usage = _usage(usage)
    return Event(
        "tool_call", key, name, command, arguments, None, None, None, None, None, at, None, NO_METADATA, usage
    )


def _tool_result(line: EventFields) -> Event:
    key, at = _key_and_time(line)
    output, code, success = line.output, line.exit_code, line.success
    if (error := line.error) is not None:
        output = error if output is None else output
        success = False if success is None and code is None else success
    if (seconds := line.duration_ms) is not None:
        seconds /= 1000
    name = line.tool or line.name
    if line.not_run is not None and (why := not_run(line.not_run)):
        return Event("tool_result", key, name, output=output, timestamp=at, seconds=seconds, not_run=why)
    return Event(
        "tool_result", key, name, None, None, output, None, None, code, success, at, seconds, NO_METADATA
    )


def _message(line: EventFields, type: EventType = "message") -> Event:
    key, at = _key_and_time(line)
    text = line.text
    if text is None and isinstance(line.error, str):
        text = line.error
    if (usage := line.usage) is not None:
        usage = _usage(usage)
    return Event(
        type, key, line.name, None, None, None, text, line.role, None, None, at, None, NO_METADATA, usage
    )


def _usage(value: Json) -> Usage | None:
    """Return the tokens of a model's turn, `{"input": n, "output": n}`; None for anything else."""
    try:
        return msgspec.convert(value, Usage) if isinstance(value, dict) and value else None
    except ValueError:
        return None


def _output(line: EventFields) -> Event:
    at = line.timestamp if line.timestamp is not None else line.ts
    at = str(at) if isinstance(at, float) else at
    return Event("message", text=line.text, role="assistant", timestamp=at, metadata=NO_METADATA)


MAKERS: Mapping[str, Callable[[EventFields], Event]] = {
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "message": _message,
    "model_step": partial(_message, type="model_step"),
    "error": partial(_message, type="error"),
    "output": _output,
}
"""Functions that turn a line into an event, by the line's kind."""


class Family(NamedTuple):
    """The lines that name their kind in one field, each kind decoded into its own type."""

    decode: Callable[[bytes], EventFields]
    makers: Mapping[type[Struct], Callable[[EventFields], Event]]


def _family(base: type[EventFields], field: str) -> Family:
    kinds = {
        msgspec.defstruct(kind, (), bases=(base,), tag_field=field, tag=kind, gc=False): maker
        for kind, maker in MAKERS.items()
    }
    every: Any = reduce(or_, kinds)
    return Family(msgspec.json.Decoder(every).decode, kinds)


BY_EVENT, BY_TYPE = _family(_ByEvent, "event"), _family(_ByType, "type")


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
