"""Render a transcript for a judge: redacted and of limited length."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import msgspec

from evaluators.model import Event, Transcript
from evaluators.redaction import redact_patterns

MAX_CHARACTERS = 60_000
"""Characters of a transcript, or of another value, in a judge's prompt; longer ones are cut in the middle."""
MAX_EVENT_CHARACTERS = 4_000
"""Characters of one event, so that one long output leaves room for the rest."""


_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
)
"""Colours and other controls of a terminal (ECMA-48), which show nothing."""
_BREAK = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""What begins a line on some screen, beside the line feed."""
_INVISIBLE = (
    r"\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Characters without a mark of their own: those of the category Cf, fillers and selectors (Unicode, 5.21)."""
_EVENT = re.compile(rf"^([{_INVISIBLE}]*)(?=[\[\uff3b])", re.MULTILINE)
_COMMAND = re.compile(rf"^([{_INVISIBLE}]*)(?=[$\uff04])", re.MULTILINE)


def escape_events(text: str) -> str:
    """Return a printed text whose lines that look like events, however they are written, begin with a backslash."""
    return _EVENT.sub(r"\1\\", _plain(text))


def escape_commands(text: str) -> str:
    """Return a written text whose lines that look like commands after a prompt begin with a backslash."""
    return _COMMAND.sub(r"\1\\", _plain(text))


def _plain(text: str) -> str:
    return _TERMINAL.sub("", _BREAK.sub("\n", text))


def render_transcript(transcript: Transcript) -> str:
    """Return the events of a transcript as text, else its plain text, redacted and cut in the middle."""
    lines = [_line(event) for event in transcript.events]
    text = "\n".join(line for line in lines if line)
    return cut_middle(redact_patterns(text or escape_events(transcript.text)), MAX_CHARACTERS)


def cut_middle(text: str, longest: int) -> str:
    """Return the beginning and end of a long text, with the number of characters left out."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def hash_tag(name: str, text: str) -> str:
    """Return the name of a tag around a text; it has the text's hash, so the text can't contain its closing tag."""
    return f"{name}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _line(event: Event) -> str:
    text = cut_middle("\n".join(_parts(event)), MAX_EVENT_CHARACTERS)
    # Printed lines that imitate events stay part of the event that printed them.
    return f"[{_label(event)}] {escape_events(text)}" if text else ""


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
            yield value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
