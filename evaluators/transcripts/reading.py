"""What every reader of an agent's output needs."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

import msgspec

from evaluators.model import Json

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


_SHOWN = 5


class UnreadableTranscript(Exception):
    """The output is not what its reader reads: the trial is an error, not a fail. The message is a sentence."""


class NoKnownEvents(UnreadableTranscript):
    """The output could be decoded, and no event is of a known type: another program's stream."""


def as_text(raw: bytes) -> str:
    """Return the bytes as text; what is not UTF-8 is replaced, line ends are newlines."""
    return raw.decode("utf-8", "replace").replace("\r\n", "\n")


def no_events(what: str, kinds: Iterable[str]) -> NoKnownEvents:
    """Return the error of an output that could be decoded and in which no event is of a known type."""
    return NoKnownEvents(
        f"The output isn't a {what}: none of its events has a known type (found: {shown_kinds(kinds)}). "
        "Choose the parser that fits it."
    )


def shown_kinds(kinds: Iterable[str]) -> str:
    """Return the first kinds of events, sorted, as part of a sentence."""
    names = sorted({kind or "none" for kind in kinds})
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def line_problems(lines: list[int], what: str) -> tuple[str, ...]:
    """Return one sentence on the lines that a reader skipped; none without such lines."""
    if not lines:
        return ()
    numbers = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
    return (f"{len(lines)} of the lines {what} and were left out (line {numbers}).",)
