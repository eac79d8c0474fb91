"""Decode files that people have: UTF-8 with or without a byte order mark, and UTF-16, which Windows programs write."""

from __future__ import annotations

import codecs

_LOOKED_AT = 256


def encoding_of(head: bytes) -> str:
    """Return the encoding of a text by its first bytes; UTF-8 unless they say otherwise."""
    if len(head) > 3 and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = head[:_LOOKED_AT:2], head[1:_LOOKED_AT:2]
    if len(odd) > 1 and not any(odd) and all(even):
        return "utf-16-le"
    if len(odd) > 1 and not any(even[: len(odd)]) and all(odd):
        return "utf-16-be"
    return "utf-8-sig"


def decode_text(content: bytes, errors: str = "strict") -> str:
    """Return a file's text, without a byte order mark. Raises `UnicodeDecodeError` unless `errors` is `replace`."""
    return content.decode(encoding_of(content), errors)
