"""What a text tells of how a command ended, where no exit code was recorded."""

from __future__ import annotations

import re

_EXIT = re.compile(r"\bexit(?:ed)?(?: with)? (?:code|status)[: =]*(\d{1,9})")
_ERROR = re.compile(r"^[\s\[*✗✖❌!]*(?:errors?|failed|fatal)\b(?![: ]*(?:0\b|none\b)|-free)", re.MULTILINE)
_USAGE = re.compile(r"^\s*usage:", re.MULTILINE)


def told_exit_code(output: str, *, after_help: bool) -> int:
    """Return the exit code that the lines behind a command tell: the number they name, else 1 for an
    error word at the start of a line (`usage:` is one where no help was asked for), else 0.
    """
    low = output.lower()
    if "exit" in low and (told := _EXIT.search(low)):
        return int(told[1])
    if ("error" in low or "fail" in low or "fatal" in low) and _ERROR.search(low):
        return 1
    return int(not after_help and "usage:" in low and _USAGE.search(low) is not None)
