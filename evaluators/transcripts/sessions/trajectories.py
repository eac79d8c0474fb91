"""Sessions in files of one JSON object: trajectories of mini-swe-agent and in ATIF, and logs of Inspect.

History that Claude Code writes into a session file again when it is resumed or compacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import IO

import msgspec

from evaluators.model import Event, Json
from evaluators.transcripts import atif, inspect_log, mini_swe_agent
from evaluators.transcripts.inspect_log import is_archive, read_archive
from evaluators.transcripts.reading import UnreadableTranscript
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    UnreadableSession,
    keep_whole,
    only_session,
    span_of,
    whole_json,
)
from evaluators.transcripts.stream import Object, mapping_or_empty, text_or_none

_encode = msgspec.json.Encoder(order="deterministic").encode


def content_key(event: Event) -> str:
    """Return what is the same in every copy of an event. Ids alone are not unique: some models write `call_0`."""
    return digest(event.type, event.role, event.id, event.name, event.text, event.input)


def call_key(event: Event) -> str:
    """Return the keys that identify a call in every part of its session. Some models repeat ids."""
    return digest(event.id, event.name, event.command, event.timestamp)


def digest(*parts: Json) -> str:
    """Return a hash that is the same in every process, for it may be stored."""
    return blake2b(_encode(parts), digest_size=8).hexdigest()


KEY = 12
"""Characters of a message's key; a session stores one for each message."""


def message_key(id: Json) -> str:
    """Return a hash of a message's id."""
    return digest(id)[:KEY]


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
            self.calls.append(tuple(digest(*pair) for pair in pairs))
        return is_copy

    def _is_answered(self, result: Event) -> bool:
        """Return whether the result's call is a copy whose first one has its result."""
        key, anchors, is_copy = self._last.get(result.id or "", ("", (), False))
        pairs = [(key, anchor) for anchor in anchors]
        was_answered = not self._answered.isdisjoint(pairs)
        self._answered.update(pairs)
        return is_copy and was_answered


def matches_mini(value: Object) -> bool:
    """Return whether an object is a trajectory of mini-swe-agent."""
    return mini_swe_agent.is_mini_trajectory(value)


def parse_mini(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the session of a trajectory of mini-swe-agent."""
    value = mapping_or_empty(whole_json(file))
    if not mini_swe_agent.is_mini_trajectory(value):
        raise UnreadableSession("No `messages` of a trajectory of mini-swe-agent found.")
    read = mini_swe_agent.read_mini_trajectory(value)
    times = span_of(event.timestamp for event in read.events)
    return only_session(Session("", read, mini_swe_agent.model_of(value), *times), "mini-swe-agent")


def matches_atif(value: Object) -> bool:
    """Return whether an object is a trajectory in ATIF."""
    return atif.is_atif(value)


def parse_atif(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the session of a trajectory in ATIF."""
    value = mapping_or_empty(whole_json(file))
    if not atif.is_atif(value):
        raise UnreadableSession("No `steps` of a trajectory in ATIF found.")
    read = atif.read_atif(value)
    id, times = text_or_none(value.get("session_id")) or "", span_of(event.timestamp for event in read.events)
    return only_session(Session(id, read, atif.model_of(value), *times), "ATIF")


def matches_inspect(value: Object) -> bool:
    """Return whether an object is a log of Inspect."""
    return isinstance(value.get("eval"), dict) and isinstance(value.get("plan"), dict)


def parse_inspect(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield a session for each sample of a log of Inspect."""
    value = _inspect_log(file)
    samples = inspect_log.samples_of(value)
    if not samples:
        raise UnreadableSession("No samples of a log of Inspect found.")
    about = mapping_or_empty(value.get("eval"))
    model = text_or_none(about.get("model")) or ""
    for sample in samples:
        read = inspect_log.read_sample(sample)
        times = span_of(event.timestamp for event in read.events)
        yield Session(text_or_none(sample.get("uuid")) or _sample_id(about, sample), read, model, *times)


def _sample_id(about: Object, sample: Object) -> str:
    """Return an id for a sample of an older log: its evaluation, id and epoch."""
    run = text_or_none(about.get("eval_id")) or digest(about)
    return f"{run}/{sample.get('id')}/{sample.get('epoch', 1)}"


def _inspect_log(file: IO[bytes]) -> Object:
    begins = file.read(64)
    file.seek(0)
    if not is_archive(begins):
        return mapping_or_empty(whole_json(file))
    try:
        return read_archive(file.read())
    except UnreadableTranscript as error:
        raise UnreadableSession(str(error)) from error
