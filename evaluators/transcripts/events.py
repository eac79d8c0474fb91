"""Structured events, one JSON object a line (`events.jsonl` of llm-tool-test).

Two families are read: those that say `event` what they are (spawn, output, tool_call, tool_result,
complete) and those that say `type` (setup_command, execution, post_script, and the types of `Event`).
"""

from __future__ import annotations

import io

import msgspec
from msgspec import Struct

from evaluators.model import Event, EventType, Json, Transcript
from evaluators.traces import shell_command
from evaluators.transcripts.reading import UnreadableTranscript, as_text, told_problems

_SAID: dict[str | None, EventType] = {"message": "message", "model_step": "model_step", "error": "error"}
_NO_METADATA: dict[str, Json] = {}
"""Shared: a dictionary for each of a long log's events has the garbage collector look through them again and again."""
_KNOWN_RAW = frozenset(("spawn", "complete", "setup_command", "execution", "post_script"))


class _Line(Struct, gc=False):
    """The fields of an event that mean something here; others are passed over."""

    event: str | None = None
    type: str | None = None
    id: str | int | None = None
    tool: str | None = None
    name: str | None = None
    command: Json = None
    input: Json = None
    output: Json = None
    text: str | None = None
    role: str | None = None
    exit_code: int | None = None
    success: bool | None = None
    ts: str | float | None = None
    timestamp: str | float | None = None
    duration_ms: float | None = None
    error: Json = None


_decode = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder().decode


def parse(raw: bytes) -> Transcript:
    """Return the events of JSON lines. Lines that are no event are counted and told of.

    Raises `UnreadableTranscript` when there are lines and none of them is an event.
    """
    found: list[Event] = []
    bad: list[int] = []
    # One line at a time: a list of all lines would cost more than decoding them.
    for number, line in enumerate(io.BytesIO(raw), start=1):
        try:
            found.append(_event(_decode(line), line))
        except (ValueError, RecursionError):
            late = _second_try(line)
            if late is not None:
                found.append(late)
            elif line.strip():
                bad.append(number)
    if bad and not found:
        raise UnreadableTranscript(
            "None of the lines is a JSON object. Choose the parser that fits the agent's output."
        )
    return _transcript(found, told_problems(bad, "are no events"))


def holds_call(transcript: Transcript) -> bool:
    """Tell whether there is a tool call among the events."""
    return any(event.type == "tool_call" for event in transcript.events)


def _event(line: _Line, source: bytes | str) -> Event:
    # Positional arguments and few calls, as this runs for every line of what may be a very long log.
    kind, id_, when = line.event or line.type, line.id, line.timestamp
    key = str(id_) if isinstance(id_, int) else id_
    if when is None:
        when = line.ts
    at = str(when) if isinstance(when, float) else when
    if kind == "tool_call":
        name, command, given = line.tool or line.name, line.command, line.input
        if not isinstance(command, str):
            command = shell_command(name, given)
        return Event(
            "tool_call", key, name, command, given, None, None, None, None, None, at, None, _NO_METADATA
        )
    if kind == "tool_result":
        return _tool_result(line, key, at)
    if (said := _SAID.get(kind)) is not None:
        text = line.text if line.text is not None else _text(line.error)
        return Event(
            said, key, line.name, None, None, None, text, line.role, None, None, at, None, _NO_METADATA
        )
    if kind == "output":
        return Event("message", None, None, None, None, None, line.text, "assistant", None, None, at)
    return Event(
        "raw", key, kind, exit_code=line.exit_code, text=_embedded(line), metadata=_decode_any(source)
    )


def _tool_result(line: _Line, key: str | None, at: str | None) -> Event:
    output, success, error, milliseconds = line.output, line.success, line.error, line.duration_ms
    if error is not None:
        output = error if output is None else output
        success = False if success is None and line.exit_code is None else success
    seconds = None if milliseconds is None else milliseconds / 1000
    return Event(
        "tool_result",
        key,
        line.tool or line.name,
        None,
        None,
        output,
        None,
        None,
        line.exit_code,
        success,
        at,
        seconds,
        _NO_METADATA,
    )


def _embedded(line: _Line) -> str | None:
    """Return the transcript that an `execution` event holds."""
    return _text(line.output) if line.type == "execution" else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


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


def _transcript(events: list[Event], problems: tuple[str, ...]) -> Transcript:
    calling = any(event.type == "tool_call" for event in events)
    messages = (event.text for event in reversed(events) if event.type == "message" and event.role != "user")
    return Transcript(
        events=tuple(events),
        source="events" if events else "none",
        # Only without calls is anything sought in the text.
        text="" if calling else "\n".join(event.text for event in events if event.text),
        answer=next((text.strip() for text in messages if text), ""),
        problems=problems,
        unknown_events=len(
            [None for event in events if event.type == "raw" and event.name not in _KNOWN_RAW]
        ),
    )
