"""Text of strangers (agents, models, files) made safe to look at: nothing hidden, nothing endless."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from evaluators.redaction import redact_patterns

LONGEST = 4000
"""Characters of one text shown on a page; the whole is a download."""
MOST_LINES = 60


def _mark(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def mark_invisible(text: str) -> str:
    """Return the text with control, bidirectional and other invisible characters replaced by marks.

    Newlines and tabs stay. Without this a transcript could show other words than it holds (Unicode TR 36).
    """
    if text.replace("\n", " ").replace("\t", " ").isprintable():
        return text
    return "".join(
        _mark(character)
        if character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
        else character
        for character in text.replace("\r\n", "\n")
    )


@dataclass(frozen=True)
class Cut:
    """The beginning of a text, and how much of it is left out."""

    text: str
    lines: int
    characters: int
    is_cut: bool

    @property
    def whole(self) -> str:
        """Say how long the whole text is, as a link's words."""
        return f"{self.lines} lines" if self.lines > MOST_LINES else f"{self.characters:,} characters"


def show_text(text: str) -> str:
    """Return a text as pages show it: what is hidden made visible, what looks like a secret redacted."""
    return redact_patterns(mark_invisible(text))


def cut_text(text: str, *, characters: int = LONGEST, lines: int = MOST_LINES) -> Cut:
    """Return as much of the text as a page shows, redacted and made visible."""
    # A secret is looked for well beyond the cut, so that none is shown by half.
    looked_at = show_text(text[: 2 * characters + LONGEST])
    head = "\n".join(looked_at.split("\n", lines)[:lines])[:characters]
    is_cut = len(head) < len(looked_at) or len(text) > 2 * characters + LONGEST
    return Cut(head, text.count("\n") + 1, len(text), is_cut)
