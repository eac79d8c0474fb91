"""Read and summarize traces in AgentV's trace model."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from evaluators.json_values import int_or_none
from evaluators.model import NOT_RUN, Event, Json, NotRun, Transcript
from evaluators.tool_use.powershell import POWERSHELLS

TYPES = frozenset(("model_step", "tool_call", "tool_result", "message", "error"))
"""The event types that are evaluated (AgentV evaluation, Trace Data Model)."""

_SHELL_TOOLS = frozenset(("bash", "shell", "sh", "zsh", "terminal", "exec", "local_shell"))
_SHELL_TOOLS |= {"exec_command", "execute_bash", "execute_command", "execute_shell_command", "run_command"}
_SHELL_TOOLS |= {"run_shell", "run_shell_command", "run_terminal_cmd", "shell_command"} | POWERSHELLS
_SHELL = re.compile(r"(?:/\S*/)?(?:ba|z|da)?sh")
_STATED = re.compile(
    r"\A\s*(?:<returncode>(?P<a>-?\d{1,9})</returncode>|\{\s*\"returncode\":\s*(?P<b>-?\d{1,9})\s*,)"
    r"|(?:\A|\n)<(?:exited|shellId: [\w-]{1,60} completed) with exit code (?P<d>-?\d{1,9})>\s*\Z"
    r"|(?:\A|\n)(?:Exit code|Process exited with code|Command exited with code):? (?P<c>-?\d{1,9})\s*(?:\Z|\n)"
)
"""How mini-swe-agent, Copilot CLI, and agents that write a line of their own, state an exit code in an observation."""
_SHOWN = 3
_MOST_MILLISECONDS = 10**12


class TraceSummary(Struct, frozen=True, rename="camel"):
    """The summary of a trace; its JSON uses the specification's names."""

    event_count: int = 0
    tool_names: tuple[str, ...] = ()
    """Sorted alphabetically."""
    tool_calls_by_name: dict[str, int] = {}
    error_count: int = 0

    def as_json(self) -> dict[str, Json]:
        """The summary as JSON, with the specification's names."""
        fields: dict[str, Json] = msgspec.to_builtins(self)
        return {**fields, "toolNames": list(self.tool_names)}


def read_trace(items: Sequence[Json]) -> Transcript:
    """Return a transcript with the events of a trace and sentences about its problems.

    Invalid timestamps become None, events of unknown types stay raw, and entries that are not objects are dropped.
    """
    events = [_event(item) for item in items if isinstance(item, dict)]
    texts = [event.text for event in events if event.text]
    answers = [event.text for event in events if event.type == "message" and event.role != "user"]
    return Transcript(
        events=tuple(events),
        source="trace",
        text="\n".join(texts),
        answer=next((text.strip() for text in reversed(answers) if text and text.strip()), ""),
        problems=tuple(_problems(items, events)),
        unknown_events=sum(event.type == "raw" for event in events),
    )


def events_of_messages(messages: Iterable[Json]) -> list[dict[str, Json]]:
    """Return the messages of an AgentV answer or transcript, with their `tool_calls`, as events of a trace."""
    events: list[dict[str, Json]] = []
    for message in messages:
        if not isinstance(message, dict):
            continue
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("tool"):
                events += _events_of_call(call)
        if message.get("role") in ("user", "assistant") and isinstance(message.get("content"), str):
            events.append({"type": "message", "role": message["role"], "text": message["content"]})
    return events


def _events_of_call(call: Mapping[str, Json]) -> list[dict[str, Json]]:
    shared = {"id": call.get("id"), "name": call["tool"]}
    began = {"type": "tool_call", "timestamp": call.get("start_time"), "input": call.get("input")}
    # Its status says that the call ran; an error says that it didn't.
    success = False if call.get("status") == "error" else None
    ended = {"type": "tool_result", "timestamp": call.get("end_time"), "success": success}
    result = {"output": call.get("output"), "durationMs": call.get("duration_ms")}
    return [{**shared, **began}, {**shared, **ended, **result}]


def has_trace(transcript: Transcript) -> bool:
    """Return whether the transcript has recorded events; plain text is not a trace."""
    return transcript.source in ("events", "stream", "trace")


def summarize_trace(events: Sequence[Event]) -> TraceSummary:
    """Return the summary of a trace; calls without a tool name are not counted by name."""
    counts = Counter(event.name for event in events if event.type == "tool_call" and event.name)
    return TraceSummary(
        event_count=len(events),
        tool_names=tuple(sorted(name for name in counts if name)),
        tool_calls_by_name={name: counts[name] for name in sorted(name for name in counts if name)},
        error_count=sum(event.type == "error" for event in events),
    )


def trace_summary(transcript: Transcript) -> dict[str, Json] | None:
    """Return the summary of a transcript's trace as JSON; None without a trace."""
    return summarize_trace(transcript.events).as_json() if has_trace(transcript) else None


def calls_of_trace(events: Sequence[Event]) -> list[Event]:
    """Return the tool calls of a trace in order."""
    return [event for event in events if event.type == "tool_call"]


def as_trace(events: Sequence[Event]) -> list[dict[str, Json]]:
    """Return events as JSON of the trace model; raw events are unchanged."""
    return [dict(event.metadata) if event.type == "raw" else _fields(event) for event in events]


def shell_command(name: str | None, input: Json) -> str | None:
    """Return the command line of a shell tool's call, None for other tools; of `["bash", "-lc", LINE]` the line."""
    if not isinstance(input, dict) or (name or "").lower() not in _SHELL_TOOLS:
        return None
    command = input.get("command", input.get("cmd"))
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return line_of_shell(command) or shlex.join(command)
    return command if isinstance(command, str) else None


def line_of_shell(words: Json) -> str | None:
    """Return the line that a shell reads, as in `["bash", "-lc", LINE]`; None for other words."""
    match words:
        case [str(program), "-c" | "-lc", str(line)] if _SHELL.fullmatch(program):
            return line
    return None


def returned_code(output: Json) -> int | None:
    """Return the exit code in what a shell tool returned: of a key, or of a line in its text's beginning or end."""
    if isinstance(output, dict):
        codes = map(
            int_or_none, (output.get(name) for name in ("exit_code", "exitCode", "returncode", "return_code"))
        )
        return next((code for code in codes if code is not None), None)
    if not isinstance(output, str):
        return None
    match = _STATED.search(output[:200]) or _STATED.search(output[-200:])
    return int(next(code for code in match.groups() if code is not None)) if match else None


def as_timestamp(value: Json) -> str | None:
    """Return an ISO 8601 time as written, None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return value


def _event(item: Mapping[str, Json]) -> Event:
    kind: Json = item.get("type")
    if kind not in TYPES:
        return Event("raw", _text(item.get("id")), _text(kind), metadata=dict(item))
    name, input = _text(item.get("name")), item.get("input")
    metadata = item.get("metadata")
    why = not_run(item.get("not_run", item.get("notRun")))
    success = None if why else item.get("success")
    code = None if why else item.get("exitCode", item.get("exit_code"))
    return Event(
        kind,
        _text(item.get("id")),
        name,
        shell_command(name, input) if kind == "tool_call" else None,
        input,
        item.get("output"),
        _text(item.get("text")),
        _text(item.get("role")),
        int_or_none(code),
        success if isinstance(success, bool) else None,
        as_timestamp(item.get("timestamp")),
        seconds=_seconds(item.get("durationMs", item.get("duration_ms"))),
        metadata=metadata if isinstance(metadata, dict) else {},
        not_run=why,
    )


def not_run(value: Json) -> NotRun:
    """Return why a call never ran, as an event names it; empty for anything else."""
    return NOT_RUN.get(value, "") if isinstance(value, str) else ""


def _fields(event: Event) -> dict[str, Json]:
    fields: dict[str, Json] = {"type": event.type, "timestamp": event.timestamp}
    for name in ("id", "name", "input", "output", "text", "metadata"):
        value = getattr(event, name)
        if value is not None and value != {}:
            fields[name] = value
    if event.command is not None and "input" not in fields:
        fields["input"] = {"command": event.command}
    return fields


def _problems(items: Sequence[Json], events: Sequence[Event]) -> Iterator[str]:
    if len(items) != len(events):
        yield f"Trace entries that are not objects: {len(items) - len(events)}. They were ignored."
    untimed = sum(event.type != "raw" and event.timestamp is None for event in events)
    if untimed:
        yield f"Trace events without an ISO 8601 timestamp: {untimed}. They have no time."
    unknown = sorted({event.name or "none" for event in events if event.type == "raw"})
    if unknown:
        shown = ", ".join(unknown[:_SHOWN]) + (", …" if len(unknown) > _SHOWN else "")
        yield f"Unknown event types in the trace: {shown}. These events are stored and not evaluated."


def _text(value: Json) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds(milliseconds: Json) -> float | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < _MOST_MILLISECONDS else None
