"""Say what it means that an own agent's program ended by itself without an answer."""

from __future__ import annotations

import os

from evalhub.lib.limits import LONGEST_ERROR
from evaluators.tool_use.recorded_calls import read_call_record
from evaluators.transcripts.endings import FailedRequest
from runs.sandbox.process import ProcessResult
from runs.sandbox.recording.record import ToolRecord

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
