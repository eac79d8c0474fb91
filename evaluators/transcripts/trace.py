"""A trace as a provider hands it over: a JSON list of events, an object that holds one, or one event a line."""

from __future__ import annotations

import msgspec

from evaluators.model import Json, Transcript
from evaluators.transcripts import otel
from evaluators.transcripts.reading import UnreadableTranscript, decode_output, no_events
from evaluators.transcripts.stream import refuse_unread_calls
from evaluators.transcripts.traces import read_trace


def parse(raw: bytes) -> Transcript:
    """Return the events of a trace; spans of OpenTelemetry are taken as one.

    An object may hold the answer beside them (`text`, `trace`). Raises `UnreadableTranscript`.
    """
    value = decode_output(raw)
    if (spans := otel.find_spans(value)) is not None:
        return otel.known_spans(spans)
    if isinstance(value, dict):
        return _with_answer(value)
    return _known_spans(value)


def _with_answer(value: dict[str, Json]) -> Transcript:
    if "type" in value and "trace" not in value:
        return _known_spans([value])
    trace = value.get("trace")
    if trace is not None and not isinstance(trace, list):
        raise UnreadableTranscript("The key 'trace' holds no list of events.")
    text = value.get("text")
    if trace is None:
        if not isinstance(text, str):
            raise UnreadableTranscript("The JSON object holds neither 'trace' nor 'text'.")
        return Transcript(source="transcript", text=text, answer=text)
    transcript = _known_spans(trace)
    return msgspec.structs.replace(transcript, answer=text) if isinstance(text, str) else transcript


def _known_spans(items: list[Json]) -> Transcript:
    transcript = read_trace(items)
    if transcript.events and transcript.unknown_events == len(transcript.events):
        raise no_events("trace", (event.name or "" for event in transcript.events))
    refuse_unread_calls(transcript.events, "trace")
    return transcript
