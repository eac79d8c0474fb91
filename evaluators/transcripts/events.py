"""Structured events, one JSON object a line (`events.jsonl` of llm-tool-test).

Two families are read: those that say `event` what they are (spawn, output, tool_call, tool_result,
complete) and those that say `type` (setup_command, execution, post_script, and the types of `Event`).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from evaluators.model import Event, Json, Transcript
from evaluators.transcripts.reading import UnreadableTranscript, as_text, told_problems

_SHELL_TOOLS = frozenset(
    ["bash", "shell", "sh", "zsh", "terminal", "exec", "run_command", "run_shell_command", "execute_command"]
)
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
    unknown = 0
    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            event = _event(_decode(line), line)
        except (ValueError, RecursionError):
            if line.strip():
                late = _second_try(line)
                bad += [] if late else [number]
                found += [late] if late else []
            continue
        found.append(event)
        unknown += event.type == "raw" and event.name not in _KNOWN_RAW
    if bad and not found:
        raise UnreadableTranscript(
            "None of the lines is a JSON object. Choose the parser that fits the agent's output."
        )
    return _transcript(found, unknown, told_problems(bad, "are no events"))


def holds_call(transcript: Transcript) -> bool:
    """Tell whether there is a tool call among the events."""
    return any(event.type == "tool_call" for event in transcript.events)


def _event(line: _Line, source: bytes | str) -> Event:
    kind = line.event or line.type
    if kind == "tool_call":
        return _tool_call(line)
    if kind == "tool_result":
        return _tool_result(line)
    if kind in ("output", "message", "model_step", "error"):
        return _said(line, kind)
    return Event(
        "raw", _id(line), kind, exit_code=line.exit_code, text=_embedded(line), metadata=_decode_any(source)
    )


def _tool_call(line: _Line) -> Event:
    name = line.tool or line.name
    command = line.command
    if command is None and isinstance(line.input, dict) and (name or "").lower() in _SHELL_TOOLS:
        command = line.input.get("command")
    if not isinstance(command, str):
        command = None
    return Event("tool_call", _id(line), name, command, line.input, timestamp=_time(line))


def _tool_result(line: _Line) -> Event:
    success = False if line.error and line.success is None and line.exit_code is None else line.success
    return Event(
        "tool_result",
        _id(line),
        line.tool or line.name,
        None,
        None,
        line.output if line.output is not None else line.error,
        None,
        None,
        line.exit_code,
        success,
        _time(line),
        None if line.duration_ms is None else line.duration_ms / 1000,
    )


def _said(line: _Line, kind: str) -> Event:
    text = line.text if line.text is not None else _text(line.error)
    if kind == "output":
        return Event("message", text=text, role="assistant", timestamp=_time(line))
    known: Any = kind
    return Event(known, _id(line), line.name, text=text, role=line.role, timestamp=_time(line))


def _embedded(line: _Line) -> str | None:
    """Return the transcript that an `execution` event holds."""
    return _text(line.output) if line.type == "execution" else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _id(line: _Line) -> str | None:
    return line.id if line.id is None or isinstance(line.id, str) else str(line.id)


def _time(line: _Line) -> str | None:
    time = line.timestamp if line.timestamp is not None else line.ts
    return time if time is None or isinstance(time, str) else str(time)


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


def _transcript(events: list[Event], unknown: int, problems: tuple[str, ...]) -> Transcript:
    said = [event.text for event in events if event.text]
    messages = [
        event.text for event in events if event.text and event.type == "message" and event.role != "user"
    ]
    return Transcript(
        events=tuple(events),
        source="events" if events else "none",
        text="\n".join(said),
        answer=messages[-1].strip() if messages else "",
        problems=problems,
        unknown_events=unknown,
    )
