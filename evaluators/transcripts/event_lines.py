"""What a line of structured events says, and the event that it becomes.

This runs for every line of a log that may be very long: a line of a known kind is decoded into its own type and
turned into an event by one function with positional arguments. Each of them makes
texts of key and moment by itself: a function for both would take one in nine of the instructions of reading a line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from evaluators.model import Event, EventType, Json, Usage
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
