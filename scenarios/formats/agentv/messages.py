"""The messages of a case, with the files they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluators.evaluator import ExpectedCall, Message
from evaluators.model import Json
from scenarios.formats.agentv.mirror import MessageFile
from scenarios.formats.agentv.place import Place
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem
from scenarios.formats.validation import kind


@dataclass(frozen=True)
class Segment:
    """One part of a message as a prompt shows it."""

    text: str = ""
    path: str = ""
    """In the upload; empty for a text."""
    shown: str = ""
    """How the case names the file."""
    guideline: bool = False


@dataclass(frozen=True)
class Turn:
    """One message in segments."""

    role: str
    segments: tuple[Segment, ...] = ()


@dataclass
class ReadMessages:
    """A list of messages: as the case has them, and in segments."""

    messages: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that are part of the question, each once."""
        return tuple(dict.fromkeys(one.path for one in self._segments() if one.path and not one.guideline))

    @property
    def guidelines(self) -> tuple[str, ...]:
        """Paths of the guideline files, each once."""
        return tuple(dict.fromkeys(one.path for one in self._segments() if one.guideline))

    def _segments(self) -> Iterator[Segment]:
        return (segment for turn in self.turns for segment in turn.segments)


def read_messages(found: Sequence[MessageFile], place: Place, at: Location) -> ReadMessages:
    """Return messages with their parts checked and their files found."""
    read = ReadMessages()
    for index, message in enumerate(found):
        here = (*at, index)
        parts, segments, problems = _content(message.content, place, (*here, "content"))
        read.problems += problems
        calls = tuple(ExpectedCall(**call.model_dump()) for call in message.tool_calls or ())
        if calls and message.role != "assistant":
            read.problems.append(_calls_of_others(place, here, message.role))
        read.messages.append(Message(role=message.role, content=parts, tool_calls=calls))
        read.turns.append(Turn(message.role, tuple(segments)))
    return read


def _content(value: Json, place: Place, at: Location) -> tuple[Json, list[Segment], list[Problem]]:
    if value is None or isinstance(value, str):
        return value, [Segment(value.strip())] if value and value.strip() else [], []
    if not isinstance(value, list):
        what = f"The content of a message must be text or a list of parts, not {kind(value)}."
        fix = "Write the text, or parts such as '- type: text' with 'value:'."
        return None, [], [place.document.problem(at, what, fix=fix, id="format/wrong-type")]
    parts: list[Json] = []
    segments: list[Segment] = []
    problems: list[Problem] = []
    for index, item in enumerate(value):
        part, segment, found = _part(item, place, (*at, index))
        parts.append(part)
        segments += [segment] if segment else []
        problems += found
    return parts, segments, problems


def _part(item: Json, place: Place, at: Location) -> tuple[Json, Segment | None, list[Problem]]:
    if isinstance(item, str):
        item = {"type": "text", "value": item}
    if not isinstance(item, dict):
        what = f"A part of a message must be a mapping, not {kind(item)}."
        fix = "Write '- type: text' or '- type: file' with 'value:'."
        return None, None, [place.document.problem(at, what, fix=fix, id="format/wrong-type")]
    if item.get("type") not in ("text", "file"):
        return item, None, [_other_part(place, at, item.get("type"))]
    value = item.get("value")
    if not isinstance(value, str) or not value.strip():
        what = f"The part of type '{item['type']}' has no text in 'value'."
        fix = "Add 'value:' with the text or the path of the file."
        return item, None, [place.document.problem((*at, "value"), what, fix=fix, id="format/missing-field")]
    return _text(value) if item["type"] == "text" else _file(value, place, (*at, "value"))


def _text(value: str) -> tuple[Json, Segment, list[Problem]]:
    return {"type": "text", "value": value}, Segment(value.strip()), []


def _file(name: str, place: Place, at: Location) -> tuple[Json, Segment | None, list[Problem]]:
    path = place.find_file(name)
    if path is None:
        return {"type": "file", "value": name}, None, [place.missing(at, name)]
    place.used.add(path)
    part = {"type": "file", "value": name, "path": path}
    text, problems = file_text(place, path, at)
    shown = name.replace("\\", "/").lstrip("/")
    return part, Segment(text, path, shown, place.is_guideline(path)), problems


def file_text(place: Place, path: str, at: Location) -> tuple[str, list[Problem]]:
    """Return the text of a file of the upload; a lint and no text where it is none."""
    try:
        return place.upload.files[path].decode("utf-8-sig").replace("\r\n", "\n"), []
    except UnicodeDecodeError:
        what = f"'{path}' is not UTF-8 text, so that its content cannot be part of a prompt."
        fix = "An agent that opens files can read it; for others save it as UTF-8."
        return "", [place.document.problem(at, what, fix=fix, id="format/binary-file", lint=True)]


def _other_part(place: Place, at: Location, name: Json) -> Problem:
    what = f"Parts of type '{name}' are kept and not shown to an agent."
    fix = "Use the types text and file."
    return place.document.problem((*at, "type"), what, fix=fix, id="format/unknown-part", lint=True)


def _calls_of_others(place: Place, at: Location, role: str) -> Problem:
    what = f"Only an assistant calls tools, and this message is one of role '{role}'."
    fix = "Move 'tool_calls' to a message of role assistant."
    return place.document.problem((*at, "tool_calls"), what, fix=fix, id="format/misplaced-tool-calls")
