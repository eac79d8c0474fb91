"""Spans of OpenTelemetry as sessions: OTLP JSON, in one document or one a line, in the GenAI or OpenInference conventions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import IO

from evaluators.model import Json
from evaluators.transcripts.otel import find_spans, read_spans
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    UnreadableSession,
    keep_whole,
    read_objects,
    span_of,
    whole_json,
)
from evaluators.transcripts.span_attributes import read_attributes
from evaluators.transcripts.stream import Object, json_or_none


def matches(value: Object) -> bool:
    """Return whether an object holds spans, or is one."""
    if "resourceSpans" in value or "resource_spans" in value:
        return True
    if value.keys() == {"spans"}:
        return find_spans(value) is not None
    return "attributes" in value and bool(_trace(value))


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield a session for each conversation of the file's spans, or for each trace without one."""
    by_trace: dict[str, list[Mapping[str, Json]]] = {}
    for span in _spans(file, problems):
        by_trace.setdefault(_trace(span), []).append(span)
    by_conversation: dict[str, list[Mapping[str, Json]]] = {}
    for trace, spans in by_trace.items():
        # Spans of tools often lack the conversation that their trace's other spans name.
        by_conversation.setdefault(next(filter(None, map(_conversation, spans)), trace), []).extend(spans)
    sessions = [_session(id, spans) for id, spans in by_conversation.items()]
    agents = [
        session for session in sessions if any(event.type != "raw" for event in session.transcript.events)
    ]
    if not agents:
        raise UnreadableSession("No spans of an agent found: none has GenAI or OpenInference attributes.")
    return iter(agents)


def _spans(file: IO[bytes], problems: Problems) -> Iterator[Mapping[str, Json]]:
    first = file.readline()
    file.seek(0)
    if isinstance(json_or_none(first), dict):
        yield from chain.from_iterable(find_spans(line) or () for line in read_objects(file, problems))
    else:
        yield from find_spans(whole_json(file)) or ()


def _trace(span: Mapping[str, Json]) -> str:
    context = span.get("context")
    inner = context if isinstance(context, dict) else {}
    names = ("traceId", "trace_id")
    return next((str(place[name]) for place in (span, inner) for name in names if place.get(name)), "")


def _conversation(span: Mapping[str, Json]) -> str:
    has = read_attributes(span.get("attributes"))
    return str(has.get("gen_ai.conversation.id") or has.get("session.id") or "")


def _session(id: str, spans: list[Mapping[str, Json]]) -> Session:
    read = read_spans(spans)
    model = next((event.name for event in read.events if event.type == "model_step" and event.name), "")
    return Session(id, read, model, *span_of(event.timestamp for event in read.events))
