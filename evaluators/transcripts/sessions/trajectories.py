"""Sessions in files of one JSON object: trajectories of mini-swe-agent and in ATIF, and logs of Inspect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from evaluators.transcripts import atif, inspect_log, mini_swe_agent
from evaluators.transcripts.inspect_log import is_inspect_archive, read_inspect_archive
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
from evaluators.transcripts.sessions.written_once import hash_stably
from evaluators.transcripts.stream import Object, mapping_or_empty, text_or_none


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
    return only_session(
        Session("", read, mini_swe_agent.read_mini_swe_model(value), *times), "mini-swe-agent"
    )


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
    return only_session(Session(id, read, atif.read_atif_model(value), *times), "ATIF")


def matches_inspect(value: Object) -> bool:
    """Return whether an object is a log of Inspect."""
    return isinstance(value.get("eval"), dict) and isinstance(value.get("plan"), dict)


def parse_inspect(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield a session for each sample of a log of Inspect."""
    value = _inspect_log(file)
    samples = inspect_log.list_inspect_samples(value)
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
    run = text_or_none(about.get("eval_id")) or hash_stably(about)
    return f"{run}/{sample.get('id')}/{sample.get('epoch', 1)}"


def _inspect_log(file: IO[bytes]) -> Object:
    begins = file.read(64)
    file.seek(0)
    if not is_inspect_archive(begins):
        return mapping_or_empty(whole_json(file))
    try:
        return read_inspect_archive(file.read())
    except UnreadableTranscript as error:
        raise UnreadableSession(str(error)) from error
