"""Output that is only text."""

from __future__ import annotations

from evaluators.model import Transcript
from evaluators.tool_use.shell import without_ansi
from evaluators.transcripts.reading import as_text


def parse(raw: bytes) -> Transcript:
    """Return the text as it came; its answer is all of it, without colours."""
    text = as_text(raw)
    return Transcript(source="transcript" if text else "none", text=text, answer=without_ansi(text).strip())
