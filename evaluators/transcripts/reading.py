"""What every reader of an agent's output needs."""

from __future__ import annotations


class UnreadableTranscript(Exception):
    """The output is not what its reader reads: the trial is an error, not a fail. The message is a sentence."""


def as_text(raw: bytes) -> str:
    """Return the bytes as text; what is not UTF-8 is replaced, line ends are newlines."""
    return raw.decode("utf-8", "replace").replace("\r\n", "\n")


def told_problems(lines: list[int], what: str) -> tuple[str, ...]:
    """Return one sentence on the lines that a reader passed over; none for no lines."""
    if not lines:
        return ()
    numbers = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
    return (f"{len(lines)} of the lines {what} and were left out (line {numbers}).",)
