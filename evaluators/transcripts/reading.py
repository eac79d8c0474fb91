"""What every reader of an agent's output needs."""

from __future__ import annotations

from collections.abc import Iterable

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
    found = sorted({kind or "none" for kind in kinds})
    return ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")


def line_problems(lines: list[int], what: str) -> tuple[str, ...]:
    """Return one sentence on the lines that a reader skipped; none without such lines."""
    if not lines:
        return ()
    numbers = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
    return (f"{len(lines)} of the lines {what} and were left out (line {numbers}).",)
