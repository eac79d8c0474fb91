"""Count a file's added and removed lines."""

from __future__ import annotations

from scenarios.text_difference import lines_of, text_difference

LONGEST = 100_000
"""Largest file in bytes whose text is compared and shown."""


def text_of(content: bytes) -> str | None:
    """Return a file's text, None for a binary file."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def changed_lines(before: bytes, after: bytes) -> tuple[int, int] | None:
    """Return the numbers of added and removed lines, None for binary or long files."""
    if max(len(before), len(after)) > LONGEST:
        return None
    old, new = text_of(before), text_of(after)
    if old is None or new is None:
        return None
    difference = text_difference(lines_of(old), lines_of(new))
    return (difference.added, difference.removed) if difference else None
