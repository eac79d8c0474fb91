"""A transcript as text for a judge: redacted and of bounded length."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from evaluators.model import Event, Json, Transcript
from evaluators.redaction import redact_patterns

LONGEST = 60_000
"""Characters of transcript that a judge gets."""
LONGEST_EVENT = 4_000
"""Characters of one event, so that one output does not crowd out the rest."""


def rendered(transcript: Transcript, *, longest: int = LONGEST) -> str:
    """Return the transcript as a judge reads it: its events, else its text, redacted, cut in the middle."""
    lines = [_line(event) for event in transcript.events]
    told = "\n".join(line for line in lines if line)
    return cut_middle(redact_patterns(told or transcript.text), longest)


def cut_middle(text: str, longest: int) -> str:
    """Return head and tail of a text that is too long, with the number of characters left out between."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _line(event: Event) -> str:
    said = cut_middle("\n".join(_parts(event)), LONGEST_EVENT)
    return f"[{_label(event)}] {said}" if said else ""


def _label(event: Event) -> str:
    words = [event.role or event.type, event.name or ""]
    if event.exit_code is not None:
        words.append(f"exit {event.exit_code}")
    elif event.success is False:
        words.append("failed")
    return " ".join(word for word in words if word)


def _parts(event: Event) -> Iterator[str]:
    if event.command is not None:
        yield event.command
    for value in (None if event.command else event.input, event.output, event.text):
        if value is not None:
            yield _text(value)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
