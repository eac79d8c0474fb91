"""Copilot CLI's session files (`~/.copilot/session-state/*/events.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from evaluators.model import total_usage
from evaluators.transcripts.copilot_cli import read_events, usage_by_model
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    keep_whole,
    only_session,
    read_objects,
    span_of,
)
from evaluators.transcripts.stream import Object, make_transcript, mapping_or_empty, text_or_none


def matches(value: Object) -> bool:
    """Return whether an object is the first line of a session of Copilot CLI."""
    return value.get("type") == "session.start" and "copilotVersion" in mapping_or_empty(value.get("data"))


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the file's session; a resumed one goes on in the same file."""
    lines = list(read_objects(file, problems))
    begin = mapping_or_empty(lines[0].get("data")) if lines else {}
    events, by_model = [reduce(event) for event in read_events(lines)], usage_by_model(lines)
    read = make_transcript(events, usage=total_usage(by_model.values()), usage_by_model=by_model)
    model = text_or_none(begin.get("selectedModel")) or next(iter(by_model), "")
    id = text_or_none(begin.get("sessionId")) or ""
    return only_session(
        Session(id, read, model, *span_of(event.timestamp for event in events)), "Copilot CLI"
    )
