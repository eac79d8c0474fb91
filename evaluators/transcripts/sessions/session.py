"""A recorded session, and what every importer needs to recognise and read its file of JSON."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import SEEK_END
from itertools import islice
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct, structs

from evalhub.lib.limits import LARGEST_FILE, LARGEST_RECORD
from evaluators.model import Event, Json, Transcript, Usage
from evaluators.tool_use.recognised_files import not_read, recognised_session, recognised_value
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.claude_code import TASK_READS
from evaluators.transcripts.reading import as_text, decode_text, encoding_of
from evaluators.transcripts.stream import Object, json_or_none

HEAD_BYTES = 64 * 1024
"""The part of a file by which its importer is found."""


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
    tokens: dict[str, tuple[str, Usage]] = {}
    """Model and tokens of each message, by a hash of its id, without those that the file marks as copies."""
    seen: frozenset[str] = frozenset()
    """The hashes of all its messages' ids."""
    all_calls: frozenset[int] = frozenset()
    """Hashes that identify each of its calls, of the tool or not."""
    replayed: int = 0
    """The number of events at the beginning that the session's own program copied from another one."""


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


Reduce = Callable[[Event], Event]
"""Takes the events of a session in their order, and returns what is kept of each in memory."""


def keep_whole(event: Event) -> Event:
    """Return the event."""
    return event


class ToolOnly:
    """Keeps the results of calls that name a tool, and of others that they ran: its commands are counted by them."""

    def __init__(self, tool: Tool) -> None:
        self._name = tool.binary.rpartition("/")[2]
        self._is_sought = bool(tool.command_pattern)
        self._ids: set[str | None] = {None}

    def __call__(self, event: Event) -> Event:
        """Return the event, without contents that say nothing of the tool."""
        if event.type == "tool_call":
            line = event.command
            is_named = line is not None and (self._is_sought or self._name in line)
            if is_named or event.name in TASK_READS:
                self._ids.add(event.id)
            # Characters of a command line without the tool that is kept.
            is_long = line is not None and not is_named and len(line) > 2_000
            return structs.replace(event, input=None, command="" if is_long else line)
        if event.type in ("tool_result", "error") and event.id in self._ids:
            return event
        return structs.replace(event, output=None, text=None)


class SessionImporter(NamedTuple):
    """A reader of one agent's session files."""

    agent: str
    matches: Callable[[Object], bool]
    """Whether a JSON object is the agent's: a line of its file, or the whole file, with its large values emptied."""
    parse: Callable[[IO[bytes], Problems, Reduce], Iterator[Session]]
    """Yield the sessions of a file, and add what could not be read. May raise `UnreadableSession`."""
    begins: Callable[[bytes], bool] = lambda head: False
    """Whether a file with this beginning (`HEAD_BYTES`), which isn't JSON, is the agent's."""


def parse_session_file(
    file: IO[bytes], importers: Sequence[SessionImporter], reduce: Reduce = keep_whole
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
    importer = _find_importer(file, head, importers)
    file.seek(0)
    problems = Problems()
    return importer.agent, importer.parse(file, problems, reduce), problems


def _find_importer(file: IO[bytes], head: bytes, importers: Sequence[SessionImporter]) -> SessionImporter:
    """Return the first importer that knows a file. Raises `UnreadableSession`."""
    for importer in importers:
        if importer.begins(head):
            return importer
    kind = recognised_session(as_text(head))
    for value in read_outline(file):
        for importer in importers:
            if importer.matches(value):
                return importer
        kind = kind or recognised_value(value)
    if kind:
        raise UnreadableSession(f"{not_read(kind)}.")
    known = ", ".join(importer.agent for importer in importers)
    raise UnreadableSession(f"line 1: not a session file of a known agent. Known: {known}.")


def span_of(times: Iterable[str | None]) -> tuple[str, str]:
    """Return the first and the last of times in ISO 8601; empty texts without any."""
    known = [(moment, time) for time in times if time and (moment := parse_time(time))]
    return (min(known)[1], max(known)[1]) if known else ("", "")


def parse_time(time: str) -> datetime | None:
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


MOST_PROBLEMS = 20
"""Sentences kept for one file."""
LOOKED_AT = 1_000
"""Lines, or items of a list, by which a file is recognised."""

_decode = msgspec.json.Decoder().decode
_decode_keys = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class UnreadableSession(Exception):
    """A file has no session; the message says why in a sentence."""


class Problems(list[str]):
    """Sentences about the parts of a file that could not be read, at most `MOST_PROBLEMS`."""

    def add(self, line: int, sentence: str) -> None:
        """Add a sentence about a line."""
        if len(self) < MOST_PROBLEMS:
            self.append(f"line {line}: {sentence}")


def read_outline(file: IO[bytes]) -> Iterator[Object]:
    """Yield the objects of a file's first lines, or the one that it is; those of a list. Large values are emptied.

    Raises `UnreadableSession` for JSON that is broken.
    """
    first = _first_line(file)
    if _keys(first) is None and first.lstrip()[:1] in (b"{", b"["):
        try:
            yield from _of_document(_read_whole(file))
            return
        except UnreadableSession:
            # The first line may be cut off; the others are read.
            file.seek(0)
            values = list(_of_lines(file))
            if not values:
                raise
            yield from values
    else:
        yield from _of_lines(file)


def _of_lines(file: IO[bytes]) -> Iterator[Object]:
    lines = iter(lambda: file.readline(LARGEST_RECORD), b"")
    for line in islice(lines, LOOKED_AT):
        if (value := _keys(line)) is not None:
            yield value


def _of_document(content: bytes) -> Iterator[Object]:
    if (value := _keys(content)) is not None:
        yield value
        return
    try:
        items = _decode_items(content)
    except (ValueError, RecursionError):
        whole_json_of(content)
        return
    for item in items[:LOOKED_AT]:
        if (value := _keys(item)) is not None:
            yield value


def _keys(content: bytes | msgspec.Raw) -> Object | None:
    """Return an object with its large values emptied, None for anything else."""
    try:
        return {key: _small(value) for key, value in _decode_keys(content).items()}
    except (ValueError, RecursionError):
        return None


def _small(value: msgspec.Raw) -> Json:
    if len(view := memoryview(value)) <= LARGEST_FILE:
        return _decode(value)
    return {ord("{"): {}, ord("["): []}.get(view[0], "")


def _first_line(file: IO[bytes]) -> bytes:
    """Return the first line that isn't empty; the file is at its beginning then."""
    first = next((line for line in iter(lambda: file.readline(LARGEST_RECORD), b"") if line.strip()), b"")
    file.seek(0)
    return first


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
    first = _first_line(file)
    if isinstance(json_or_none(first), dict) or not first.lstrip().startswith(b"{"):
        yield from read_objects(file, problems)
    else:
        value = whole_json(file)
        yield from (value,) if isinstance(value, dict) else ()


def whole_json(file: IO[bytes]) -> Json:
    """Return a file's JSON value. Raises `UnreadableSession`."""
    return whole_json_of(_read_whole(file))


def whole_json_of(content: bytes) -> Json:
    """Return the JSON value that a file's content is. Raises `UnreadableSession`."""
    try:
        return _decode(content)
    except RecursionError as error:
        raise UnreadableSession("The JSON is nested too deeply.") from error
    except ValueError as error:
        last = 1 + content.count(b"\n")
        raise UnreadableSession(f"line {last}: the JSON is broken or cut off: {error}.") from error


def _read_whole(file: IO[bytes], most: int = 4 * LARGEST_RECORD) -> bytes:
    size = file.seek(0, SEEK_END)
    file.seek(0)
    if size > most:
        raise UnreadableSession(
            f"The file is larger than {most >> 20} MB. Export fewer sessions into one file."
        )
    return file.read()
