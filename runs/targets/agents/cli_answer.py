"""Read a `cli` target's answer: text, or JSON with `text` and `trace`."""

from __future__ import annotations

import json

from evaluators.model import Json
from evaluators.transcripts.traces import TYPES


def read_answer(text: str | None) -> tuple[str | None, list[Json] | None]:
    """Return the answer and the trace of JSON with `text` and `trace`.

    A trace without any known event type is ignored.
    """
    if text is None:
        return None, None
    text = text.replace("\r\n", "\n")
    # Most answers are prose; checking for a brace is faster than a failed parse.
    if not text.lstrip().startswith("{"):
        return text, None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    if not isinstance(value, dict) or "text" not in value:
        return text, None
    trace = value.get("trace")
    known = isinstance(trace, list) and any(map(_is_event, trace))
    answer = value["text"] if isinstance(value["text"], str) else json.dumps(value["text"])
    return answer, trace if known else None


def _is_event(event: Json) -> bool:
    return isinstance(event, dict) and isinstance(kind := event.get("type"), str) and kind in TYPES
