"""Recognise the JSON lines that agent programs print, where an answer was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from evalhub.lib.limits import MOST_LINES
from evaluators.model import Json

FEWEST_LINES = 3
_WORDS = frozenset(
    [
        "agent",
        "assistant",
        "event",
        "execution",
        "hook",
        "init",
        "item",
        "iteration",
        "message",
        "part",
        "result",
        "session",
        "step",
        "stream",
        "system",
        "text",
        "thread",
        "tool",
        "turn",
        "user",
    ]
)
"""Words that agents use in the types of their events."""


def is_agent_stream(text: str) -> bool:
    """Return whether a text is an agent's events, one JSON object a line, not an answer in prose or JSON lines.

    Their kinds vary and are composed of words such as `session`, `tool` and `message`.
    """
    lines = [line for line in islice(_lines(text), MOST_LINES) if line.strip()]
    objects = [value for line in lines if isinstance(value := _decode(line), dict)]
    others = len(lines) - len(objects)
    # Other lines, such as warnings, by the number of JSON lines.
    if (
        len(objects) < FEWEST_LINES
        or others > 0.5 * len(objects)
        or any(line.lstrip().startswith("```") for line in lines)
    ):
        return False
    kinds = [_kind(value) for value in objects]
    known = [kind for kind in kinds if kind and _WORDS.intersection(re.split(r"[^a-z]+", kind.lower()))]
    return len(set(known)) > 1 and len(known) * 2 > len(objects)


def _lines(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[at:end]
        at = end + 1


def _decode(line: str) -> Json:
    if not line.lstrip().startswith("{"):
        return None
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None


def _kind(value: dict[str, Json]) -> str:
    """Return what kind of event an object is: by `type`, `event` or the method of JSON-RPC."""
    for name in ("type", "event"):
        if isinstance(kind := value.get(name), str):
            return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind)
    if "jsonrpc" in value:
        return str(value.get("method") or "result")
    return ""
