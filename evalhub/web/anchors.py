"""Names by which a page leads to one of its parts."""

from __future__ import annotations

from zlib import crc32


def anchor(text: str) -> str:
    """Return a short name for a text that may hold anything, a secret or a megabyte; equal texts have one name."""
    return f"{crc32(text.encode(errors='surrogatepass')):08x}"
