"""What a `cli` target answers: text, or JSON with `text` and `trace`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from evaluators.model import Json

_TRACE_TYPES = frozenset(("model_step", "tool_call", "tool_result", "message", "error"))


def read_answer(text: str | None) -> tuple[str | None, list[Mapping[str, Json]] | None]:
    """Return the answer and, where it comes as JSON with `text` and `trace`, the trace's valid events."""
    if text is None:
        return None, None
    text = text.replace("\r\n", "\n")
    # Most answers are prose, and to be told where it is no JSON takes longer than to look for a brace.
    if not text.lstrip().startswith("{"):
        return text, None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    if not isinstance(value, dict) or "text" not in value:
        return text, None
    trace = value.get("trace")
    events = [event for event in trace if _is_event(event)] if isinstance(trace, list) else None
    return value["text"] if isinstance(value["text"], str) else json.dumps(value["text"]), events or None


def _is_event(event: Json) -> bool:
    return isinstance(event, dict) and event.get("type") in _TRACE_TYPES
