"""History that Claude Code writes into a session file again when it is resumed or compacted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import msgspec

from evaluators.model import Event, Json

_encode = msgspec.json.Encoder(order="deterministic").encode


def content_key(event: Event) -> str:
    """Return what is the same in every copy of an event. Ids alone are not unique: some models write `call_0`."""
    return hash_stably(event.type, event.role, event.id, event.name, event.text, event.input)


def call_key(event: Event) -> str:
    """Return the keys that identify a call in every part of its session. Some models repeat ids."""
    return hash_stably(event.id, event.name, event.command, event.timestamp)


def hash_stably(*parts: Json) -> str:
    """Return a hash that is the same in every process, because it may be stored."""
    return blake2b(_encode(parts), digest_size=8).hexdigest()


KEY = 12
"""Characters of a message's key; a session stores one for each message."""


def message_key(id: Json) -> str:
    """Return a hash of a message's id."""
    return hash_stably(id)[:KEY]


class WrittenOnce:
    """Passes each event of a file once: the same content with the same message id, or at the same time."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        self._answered: set[tuple[str, str]] = set()
        self.calls: list[tuple[str, ...]] = []
        """What is the same in a copy of each call that was passed."""
        self._last: dict[str, tuple[str, tuple[str, ...], bool]] = {}
        """The last call of each id: its content, its anchors, and whether it is a copy."""

    def first(self, events: Iterable[Event], message: str) -> Iterator[Event]:
        """Yield the events of a message that no earlier line has."""
        for event in events:
            anchors = tuple(f"{kind}{at}" for kind, at in (("m", message), ("t", event.timestamp)) if at)
            if event.type == "tool_result":
                if not self._is_answered(event):
                    yield event
            elif not self._is_copy(event, anchors):
                yield event

    def _is_copy(self, event: Event, anchors: tuple[str, ...]) -> bool:
        key = content_key(event)
        pairs = [(key, anchor) for anchor in anchors]
        is_copy = not self._seen.isdisjoint(pairs)
        self._seen.update(pairs)
        if event.type == "tool_call" and event.id:
            self._last[event.id] = (key, anchors, is_copy)
        if event.type == "tool_call" and not is_copy:
            self.calls.append(tuple(hash_stably(*pair) for pair in pairs))
        return is_copy

    def _is_answered(self, result: Event) -> bool:
        """Return whether the result's call is a copy whose first one has its result."""
        key, anchors, is_copy = self._last.get(result.id or "", ("", (), False))
        pairs = [(key, anchor) for anchor in anchors]
        was_answered = not self._answered.isdisjoint(pairs)
        self._answered.update(pairs)
        return is_copy and was_answered
