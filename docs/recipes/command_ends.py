"""How a command ended, from what an agent program reports of it: for the recipes beside this file.

*Success* and *completed* say in these programs that the command was carried out, not that it ended with 0. So an exit
code counts only where the program states it; otherwise the end is unknown.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_KEYS = ("exitCode", "exit_code", "returncode", "exit")
_INSIDE = ("shellExecution", "metadata")
_LAST_LINE = re.compile(
    r"(?:<shellId: \S+ completed with exit code (-?\d+)>"
    r"|\[?(?:Command exited|Failed) with (?:exit )?code:? (-?\d+)\]?)\s*\Z"
)
_QWEN = re.compile(
    r"\nExit Code: (-?\d+)\nSignal: [^\n]*(?:\nBackground PIDs: [^\n]*)?(?:\nProcess Group PGID: [^\n]*)?\s*\Z"
)
_GEMINI = re.compile(
    r"(?:\nError: [^\n]*)?(?:\nExit Code: (?P<code>-?\d+))?(?:\nSignal: (?P<signal>[^\n]*))?(?:\nBackground PIDs: [^\n]*)?"
    r"\nProcess Group PGID: \d+\s*(?:</untrusted_context>\s*)?\Z"
)
_GEMINI_START = re.compile(r"\A\s*(?:<untrusted_context>\s*)?Output: ")


def stated_code(reported: Any, text: str) -> int | None:
    """Return the exit code that a result states in a field, else at the end of its text; None if it states none."""
    code = _in_fields(reported)
    return _in_text(text) if code is None else code


def _in_fields(reported: Any) -> int | None:
    if not isinstance(reported, dict):
        return None
    places = [reported, *(reported.get(name) for name in _INSIDE), *(reported.get("contents") or ())]
    for place in places:
        found = [place.get(key) for key in _KEYS] if isinstance(place, dict) else []
        codes = [code for code in found if isinstance(code, int) and not isinstance(code, bool)]
        if codes:
            return codes[0]
    return None


def _in_text(text: str) -> int | None:
    found = (_QWEN if text.startswith("Command: ") else _LAST_LINE).search(text)
    return int(next(filter(None, found.groups()))) if found else None


class GeminiSession:
    """The ends of commands in the session files that Gemini CLI writes below the agent's home."""

    def __init__(self, home: Path | None = None) -> None:
        self.chats = (home or Path.home()) / ".gemini/tmp"

    def codes(self) -> dict[str, int]:
        """Return the exit codes so far by the call's id, without those of commands that did not end by themselves."""
        found: dict[str, int] = {}
        for path in sorted(self.chats.glob("*/chats/*.json*")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                for call in _calls(line):
                    code = _gemini_code(call)
                    if code is not None:
                        found[str(call.get("id"))] = code
        return found


def _calls(line: str) -> list[dict[str, Any]]:
    try:
        message = json.loads(line)
    except ValueError:
        return []
    found = message.get("toolCalls") if isinstance(message, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _gemini_code(call: dict[str, Any]) -> int | None:
    """Return the exit code of a call: Gemini CLI writes it only if it isn't 0, after the output."""
    for part in call.get("result") or ():
        response = part.get("functionResponse") if isinstance(part, dict) else None
        text = ((response or {}).get("response") or {}).get("output")
        if not isinstance(text, str) or not (start := _GEMINI_START.match(text)):
            continue
        rest = text[start.end() :]
        # The command's own last line may read like Gemini's.
        shown = call.get("resultDisplay")
        if isinstance(shown, str) and shown and rest.startswith(shown):
            rest = rest[len(shown) :]
        ended = _GEMINI.search(rest)
        if ended and not ended["signal"]:
            return int(ended["code"] or 0)
    return None
