"""Read a `cli` target's answer: text, or JSON with `text` and `trace`, or with AgentV's messages; or why there is none."""

from __future__ import annotations

import json
import os

from msgspec import Struct

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.model import Json, Usage, plausible_cost
from evaluators.tool_use.recorded_commands import read_call_record
from evaluators.transcripts.endings import FailedRequest
from evaluators.transcripts.traces import TYPES, events_of_messages
from runs.sandbox.process import ProcessResult
from runs.sandbox.recording.record import ToolRecord


class CliAnswer(Struct, frozen=True):
    """What the command of a `cli` target answered."""

    text: str | None = None
    trace: list[Json] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None


def parse_answer(text: str | None) -> CliAnswer:
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
    if not (isinstance(trace, list) and any(map(_is_event, trace))):
        trace = list(events_of_messages(messages)) or None if isinstance(messages, list) else None
    return CliAnswer(
        said if isinstance(said, str) else json.dumps(said),
        trace,
        _usage(value.get("token_usage")),
        plausible_cost(value.get("cost_usd")),
    )


def _last_text(messages: Json) -> str | None:
    """Return the last text of an assistant among messages; None if they aren't any."""
    listed = messages if isinstance(messages, list) else ()
    said = [one.get("content") for one in listed if isinstance(one, dict) and one.get("role") == "assistant"]
    return next((text for text in reversed(said) if isinstance(text, str)), None)


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


OUTAGE = os.EX_TEMPFAIL
"""The exit code by which a program says that its model's service failed (sysexits.h: a temporary failure)."""


def outage_of(result: ProcessResult, record: ToolRecord | None) -> FailedRequest:
    """Return the outage that a program without an answer reports by its exit code; an empty one for another end.

    The exit code of a tool's last call, which a shell passes on, says nothing of the service.
    """
    if result.exit_code != OUTAGE or result.error or _is_passed_on(record):
        return FailedRequest()
    said = last_line(result.stderr)
    return FailedRequest(f"It ended with exit code {OUTAGE} (EX_TEMPFAIL){f': {said}' if said else ''}")


def note_on_end(about: str, result: ProcessResult) -> str:
    """Return a warning about a program without an answer that ended with another exit code than 0; else empty."""
    if not result.exit_code or result.error or result.timed_out or result.cancelled:
        return ""
    said = last_line(result.stderr)
    end = f": {said.rstrip('.')}." if said else "."
    return f"{about} ended with exit code {result.exit_code} and without an answer{end}"


def last_line(printed: bytes) -> str:
    """Return the last line that isn't empty."""
    lines = printed.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:LONGEST_ERROR]


def _is_passed_on(record: ToolRecord | None) -> bool:
    calls = read_call_record(record.content or b"") if record is not None else ()
    last = max(calls, key=lambda call: call.start + (call.seconds or 0.0), default=None)
    return last is not None and last.exit == OUTAGE
