"""Regular expressions as JavaScript's `RegExp(text)` reads them, in which eval cases write theirs.

What JavaScript reads otherwise than RE2 is written so that both engines of `evaluators.patterns` read it as
JavaScript does (ECMA-262, RegExp without flags). A `\\p{…}` stays the property that its author means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from evaluators.js_text import WHITE_SPACE

_LINE_ENDS = "\n\r\u2028\u2029"
_WHITE = [(ord(one), ord(one)) for one in sorted(WHITE_SPACE)]
_LAST = 0x10FFFF

_PIECE = re.compile(
    r"\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\c[a-zA-Z]|\\k<[^>]*>"
    r"|\[\^?\]|\\.|.",
    re.DOTALL,
)
_OWN_ESCAPES = frozenset("bBdDfnprPstSvwWx123456789")
"""Escapes that mean more than their character, and are read alike everywhere or translated below."""


def from_javascript(text: str) -> str:
    """Return the pattern that RE2 and its replacement match as JavaScript matches this one."""
    return "".join(_written(text))


def _written(text: str) -> Iterator[str]:
    inside = False
    for piece in _PIECE.findall(text):
        if piece in ("[]", "[^]") and not inside:
            yield r"[^\s\S]" if piece == "[]" else r"[\s\S]"
            continue
        # Within a class the second bracket of these closes it.
        for part in (piece[:-1], "]") if inside and piece in ("[]", "[^]") else (piece,):
            yield _in_class(part) if inside else _outside(part)
            inside = part != "]" if inside else part == "["


def _outside(piece: str) -> str:
    if piece == ".":
        return f"[^{_LINE_ENDS}]"
    if piece in (r"\s", r"\S"):
        return f"[{_white()}]" if piece == r"\s" else f"[^{_white()}]"
    return f"(?P={piece[3:-1]})" if piece.startswith(r"\k<") else _escape(piece)


def _in_class(piece: str) -> str:
    if piece in (r"\s", r"\S"):
        return _white() if piece == r"\s" else _ranges(_others())
    if piece == r"\b":
        return r"\x08"
    return re.escape(piece) if piece in ("[", "[^") else _escape(piece)


def _escape(piece: str) -> str:
    """An escape as both engines read it; what is none stays."""
    if len(piece) < 2 or piece[0] != "\\" or piece[1] in _OWN_ESCAPES:
        return piece
    if piece[1] == "u" and len(piece) > 2:
        units = bytes.fromhex(piece.replace(r"\u", ""))
        return re.escape(units.decode("utf-16-be", "surrogatepass"))
    if piece[1] == "c" and len(piece) > 2:
        return f"\\x{ord(piece[2]) % 32:02x}"
    return r"\x00" if piece[1] == "0" else re.escape(piece[1])


def _white() -> str:
    return _ranges(_WHITE)


def _others() -> Iterator[tuple[int, int]]:
    borders = [(-1, -1), *_WHITE, (_LAST + 1, _LAST + 1)]
    return ((left[1] + 1, right[0] - 1) for left, right in pairwise(borders) if left[1] + 1 < right[0])


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"{_point(first)}-{_point(last)}" for first, last in ranges)


def _point(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else chr(code)
