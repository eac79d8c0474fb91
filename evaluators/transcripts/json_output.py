"""Output that is JSON: one value, or one a line."""

from __future__ import annotations

import msgspec

from evaluators.model import Json
from evaluators.transcripts.reading import UnreadableTranscript, as_text

_decode = msgspec.json.Decoder().decode


def decode_output(raw: bytes) -> Json:
    """Return a JSON object or list, or a list of the JSON values, one a line.

    Raises `UnreadableTranscript` where the bytes are neither.
    """
    text = as_text(raw).strip()
    if not text:
        raise UnreadableTranscript("There is no trace: the output is empty.")
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        value = _lines(text)
    if isinstance(value, dict | list):
        return value
    raise UnreadableTranscript("The output isn't a trace. A trace is a JSON list of events.")


def _lines(text: str) -> list[Json]:
    try:
        return [_decode(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise UnreadableTranscript(
            "The output is neither JSON nor JSON lines. Choose the parser that fits the agent's output."
        ) from None
