"""Read a `cli` target's answer: text, or JSON with `text` and `trace`, or with AgentV's messages."""

from __future__ import annotations

import json

from msgspec import Struct

from evaluators.model import Json, Usage, plausible_cost
from evaluators.transcripts.traces import TYPES, events_of_messages


class CliAnswer(Struct, frozen=True):
    """What the command of a `cli` target answered."""

    text: str | None = None
    trace: list[Json] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None


def read_answer(text: str | None) -> CliAnswer:
    """Return an answer: text, or JSON with `text` and `trace`, or with AgentV's messages and figures.

    Those are `output` (`output_messages`), whose `tool_calls` become the trace and whose last text the answer, and
    `token_usage` and `cost_usd`. A trace without any known event type is ignored.
    """
    if text is None:
        return CliAnswer()
    text = text.replace("\r\n", "\n")
    # Most answers are prose; checking for a brace is faster than a failed parse.
    if not text.lstrip().startswith("{"):
        return CliAnswer(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return CliAnswer(text)
    if not isinstance(value, dict):
        return CliAnswer(text)
    messages = value.get("output", value.get("output_messages"))
    said = value.get("text", _last_text(messages))
    if said is None:
        return CliAnswer(text)
    trace = value.get("trace")
    known = isinstance(trace, list) and any(map(_is_event, trace))
    return CliAnswer(
        said if isinstance(said, str) else json.dumps(said),
        trace if known else _trace_of(messages),
        _usage(value.get("token_usage")),
        plausible_cost(value.get("cost_usd")),
    )


def _last_text(messages: Json) -> str | None:
    """Return the last text of an assistant among messages; None if they aren't any."""
    listed = messages if isinstance(messages, list) else ()
    said = [one.get("content") for one in listed if isinstance(one, dict) and one.get("role") == "assistant"]
    return next((text for text in reversed(said) if isinstance(text, str)), None)


def _trace_of(messages: Json) -> list[Json] | None:
    """Return messages as a trace; None if they aren't any."""
    return list(events_of_messages(messages)) or None if isinstance(messages, list) else None


def _usage(value: Json) -> Usage | None:
    if not isinstance(value, dict):
        return None
    counts = (value.get(name) for name in ("input", "output", "cached"))
    read, written, cached = (
        count if isinstance(count, int) and not isinstance(count, bool) else 0 for count in counts
    )
    return Usage(read, written, cache_read=cached) if read or written else None


def _is_event(event: Json) -> bool:
    return isinstance(event, dict) and isinstance(kind := event.get("type"), str) and kind in TYPES
