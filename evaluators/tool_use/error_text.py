"""Estimate from a command's output whether it failed (llm-tool-test evaluation, Layer 1, the transcript fallback)."""

from __future__ import annotations

import re
from functools import lru_cache

_EXIT = re.compile(r"\bexit(?:ed)?(?: with)? (?:code|status)[: =]*(\d{1,9})")
_WORDS = r"(?:errors?|failed|fatal|unknown|invalid|no such|not found)\b(?![: ]*(?:0\b|none\b)|-free)"
_AT_START = re.compile(rf"^[\s\[*✗✖❌!]*{_WORDS}", re.MULTILINE)
_USAGE = re.compile(r"^\s*usage:", re.MULTILINE)
_HINTS = ("error", "fail", "fatal", "unknown", "invalid", "no such", "not found")


def exit_code_in_text(output: str, *, after_help: bool, program: str = "") -> int:
    """Return the exit code according to the lines after a command.

    It is the number they name, else 1 if they have an error message (see `has_error`), else 0.
    """
    stated = stated_exit_code(output)
    if stated is not None:
        return stated
    return int(has_error(output, after_help=after_help, program=program))


def stated_exit_code(output: str) -> int | None:
    """Return the exit code that the lines after a command name; None if they name none."""
    low = output.lower()
    named = _EXIT.search(low) if "exit" in low else None
    return int(named[1]) if named else None


def has_error(output: str, *, after_help: bool, program: str = "") -> bool:
    """Return whether a line begins with an error word, or with the program's name, a colon and an error.

    `usage:` counts, too, unless help was requested. `0 errors` and `no errors` do not.
    """
    low = output.lower()
    if any(hint in low for hint in _HINTS):
        if _AT_START.search(low):
            return True
        if program and _after_name(program.lower()).search(low):
            return True
    return not after_help and "usage:" in low and _USAGE.search(low) is not None


@lru_cache(maxsize=256)
def _after_name(program: str) -> re.Pattern[str]:
    name = rf"^\s*(?:\S*/)?{re.escape(program)}(?:\.exe)?(?: [\w-]{{1,40}})?: *"
    return re.compile(rf"{name}(?:{_WORDS}|[^\n]{{0,200}}\b(?:not found|no such)\b)", re.MULTILINE)
