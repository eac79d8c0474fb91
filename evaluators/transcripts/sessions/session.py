"""A recorded session, and what every importer needs to read one."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.model import Transcript
from evaluators.tool_use.recognised_files import READ_SESSIONS, not_read, recognised_session
from evaluators.transcripts.reading import decode_text, encoding_of
from evaluators.transcripts.stream import Object, json_or_none

HEAD_BYTES = 64 * 1024
"""The part of a file by which its importer is found."""
MOST_PROBLEMS = 20
"""Sentences kept for one file."""

_decode = msgspec.json.Decoder().decode


class UnreadableSession(Exception):
    """A file has no session; the message says why in a sentence."""


class Trail(Struct, frozen=True):
    """What shows that another file holds a session's history, too. Texts are kept as hashes."""

    messages: frozenset[int] = frozenset()
    """The ids of its messages that stay the same in a copy."""
    forked_from: frozenset[str] = frozenset()
    """The sessions that its file names as its origin."""
    root: str = ""
    """What sessions with the same beginning share; empty if the file doesn't tell."""
    calls: dict[int, tuple[str, ...]] = {}
    """What is the same in a copy of a call, by the index of its event; of a kept session, by its command."""


class Session(Struct, frozen=True):
    """One session of an agent."""

    id: str
    """The agent's own id; empty if the file has none."""
    transcript: Transcript
    model: str = ""
    started: str = ""
    """The first time in ISO 8601; empty if unknown."""
    finished: str = ""
    trail: Trail = Trail()


class Problems(list[str]):
    """Sentences about the parts of a file that could not be read, at most `MOST_PROBLEMS`."""

    def add(self, line: int, sentence: str) -> None:
        """Add a sentence about a line."""
        if len(self) < MOST_PROBLEMS:
            self.append(f"line {line}: {sentence}")


class SessionImporter(NamedTuple):
    """A reader of one agent's session files."""

    agent: str
    matches: Callable[[bytes], bool]
    """Whether a file with this beginning (`HEAD_BYTES`) is the agent's."""
    parse: Callable[[IO[bytes], Problems], Iterator[Session]]
    """Yield the sessions of a file, and add what could not be read. May raise `UnreadableSession`."""


def parse_session_file(
    file: IO[bytes], importers: Sequence[SessionImporter]
) -> tuple[str, Iterator[Session], Problems]:
    """Return the agent, the sessions and the problems of a file; problems are complete after the last session.

    Raises `UnreadableSession` if no importer knows the file.
    """
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if not head.strip():
        raise UnreadableSession("The file is empty.")
    if encoding_of(head) != "utf-8-sig" or head.startswith(codecs.BOM_UTF8):
        file = io.BytesIO(decode_text(file.read(), "replace").encode())
        head = file.read(HEAD_BYTES)
        file.seek(0)
    kind = recognised_session(head.decode("utf-8", "replace"))
    for importer in importers if kind in READ_SESSIONS else ():
        if importer.matches(head):
            problems = Problems()
            return importer.agent, importer.parse(file, problems), problems
    if kind:
        raise UnreadableSession(f"{not_read(kind)}.")
    known = ", ".join(importer.agent for importer in importers)
    raise UnreadableSession(f"line 1: not a session file of a known agent. Known: {known}.")


def read_objects(file: IO[bytes], problems: Problems) -> Iterator[Object]:
    """Yield the JSON objects of a file with one on each line, one at a time."""
    number = 0
    while line := file.readline(LARGEST_RECORD):
        number += 1
        if len(line) == LARGEST_RECORD and not line.endswith(b"\n"):
            problems.add(number, f"longer than {LARGEST_RECORD >> 20} MB; skipped.")
            while (rest := file.readline(LARGEST_RECORD)) and not rest.endswith(b"\n"):
                pass
        elif line.strip():
            value = json_or_none(line)
            if isinstance(value, dict):
                yield value
            else:
                problems.add(number, "not a JSON object; skipped.")


def read_objects_or_one(file: IO[bytes], problems: Problems) -> Iterator[Object]:
    """Yield the JSON objects of a file with one on each line, or the only one, written over all lines.

    Raises `UnreadableSession`.
    """
    first = next((line for line in iter(file.readline, b"") if line.strip()), b"")
    file.seek(0)
    if first.strip() == b"{":
        value = whole_json(file)
        yield from (value,) if isinstance(value, dict) else ()
    else:
        yield from read_objects(file, problems)


def whole_json(file: IO[bytes], most: int = 4 * LARGEST_RECORD) -> object:
    """Return a file's JSON value. Raises `UnreadableSession`."""
    content = file.read(most + 1)
    if len(content) > most:
        raise UnreadableSession(
            f"The file is larger than {most >> 20} MB. Export fewer sessions into one file."
        )
    try:
        return _decode(content)
    except RecursionError as error:
        raise UnreadableSession("The JSON is nested too deeply.") from error
    except ValueError as error:
        last = 1 + content.count(b"\n")
        raise UnreadableSession(f"line {last}: the JSON is broken or cut off: {error}.") from error


def span_of(times: Iterable[str | None]) -> tuple[str, str]:
    """Return the first and the last of times in ISO 8601; empty texts without any."""
    known = [(moment, time) for time in times if time and (moment := moment_of(time))]
    return (min(known)[1], max(known)[1]) if known else ("", "")


def moment_of(time: str) -> datetime | None:
    """Return a time in ISO 8601 as an aware moment, None for anything else."""
    try:
        moment = datetime.fromisoformat(time)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def only_session(session: Session | None, agent: str) -> Iterator[Session]:
    """Yield a file's session. Raises `UnreadableSession` if there is none."""
    if session is None or not session.transcript.events:
        raise UnreadableSession(f"No messages of a {agent} session found.")
    return iter((session,))
