"""The messages of a case, with the files they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluators.evaluator import ExpectedCall, Message
from evaluators.model import Json
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.agentv.eval_models import MessageFile
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


def read_messages(found: Sequence[MessageFile], context: EvalFileContext, at: Location) -> ReadMessages:
    """Return messages with their parts checked and their files found."""
    read = ReadMessages()
    for index, message in enumerate(found):
        here = (*at, index)
        parts, segments, problems = _content(message.content, context, (*here, "content"))
        read.problems += problems
        calls = tuple(ExpectedCall(**call.model_dump()) for call in message.tool_calls or ())
        if calls and message.role != "assistant":
            read.problems.append(_calls_of_others(context, here, message.role))
        read.messages.append(Message(role=message.role, content=parts, tool_calls=calls))
        read.turns.append(Turn(message.role, tuple(segments)))
    return read


def _content(
    value: Json, context: EvalFileContext, at: Location
) -> tuple[Json, list[Segment], list[Problem]]:
    if value is None or isinstance(value, str):
        return value, [Segment(value.strip())] if value and value.strip() else [], []
    if not isinstance(value, list):
        what = f"The content of a message must be text or a list of parts, not {kind(value)}."
        fix = "Write the text, or parts such as '- type: text' with 'value:'."
        return None, [], [context.document.problem(at, what, fix=fix, id="format/wrong-type")]
    parts: list[Json] = []
    segments: list[Segment] = []
    problems: list[Problem] = []
    for index, item in enumerate(value):
        part, segment, found = _part(item, context, (*at, index))
        parts.append(part)
        segments += [segment] if segment else []
        problems += found
    return parts, segments, problems


def _part(item: Json, context: EvalFileContext, at: Location) -> tuple[Json, Segment | None, list[Problem]]:
    if isinstance(item, str):
        item = {"type": "text", "value": item}
    if not isinstance(item, dict):
        what = f"A part of a message must be a mapping, not {kind(item)}."
        fix = "Write '- type: text' or '- type: file' with 'value:'."
        return None, None, [context.document.problem(at, what, fix=fix, id="format/wrong-type")]
    if item.get("type") not in ("text", "file"):
        return item, None, [_other_part(context, at, item.get("type"))]
    value = item.get("value")
    if not isinstance(value, str) or not value.strip():
        what = f"The part of type '{item['type']}' has no text in 'value'."
        fix = "Add 'value:' with the text or the path of the file."
        return (
            item,
            None,
            [context.document.problem((*at, "value"), what, fix=fix, id="format/missing-field")],
        )
    return _text(value) if item["type"] == "text" else _file(value, context, (*at, "value"))


def _text(value: str) -> tuple[Json, Segment, list[Problem]]:
    return {"type": "text", "value": value}, Segment(value.strip()), []


def _file(name: str, context: EvalFileContext, at: Location) -> tuple[Json, Segment | None, list[Problem]]:
    path = context.find_file(name)
    if path is None:
        return {"type": "file", "value": name}, None, [context.missing(at, name)]
    context.used.add(path)
    part = {"type": "file", "value": name, "path": path}
    text, problems = file_text(context, path, at)
    shown = name.replace("\\", "/").lstrip("/")
    return part, Segment(text, path, shown, context.is_guideline(path)), problems


def file_text(context: EvalFileContext, path: str, at: Location) -> tuple[str, list[Problem]]:
    """Return the text of a file of the upload; a lint and no text where it is none."""
    try:
        return context.upload.files[path].decode("utf-8-sig").replace("\r\n", "\n"), []
    except UnicodeDecodeError:
        what = f"'{path}' is not UTF-8 text, so that its content cannot be part of a prompt."
        fix = "An agent that opens files can read it; for others save it as UTF-8."
        return "", [context.document.problem(at, what, fix=fix, id="format/binary-file", lint=True)]


def _other_part(context: EvalFileContext, at: Location, name: Json) -> Problem:
    what = f"Parts of type '{name}' are kept and not shown to an agent."
    fix = "Use the types text and file."
    return context.document.problem((*at, "type"), what, fix=fix, id="format/unknown-part", lint=True)


def _calls_of_others(context: EvalFileContext, at: Location, role: str) -> Problem:
    what = f"Only an assistant calls tools, and this message is one of role '{role}'."
    fix = "Move 'tool_calls' to a message of role assistant."
    return context.document.problem((*at, "tool_calls"), what, fix=fix, id="format/misplaced-tool-calls")


_ROLES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


def prompt(turns: Sequence[Turn], *, embed: bool) -> str:
    """Return messages as one text; `embed` writes the content of files into it, else they are named.

    A single message stands alone, several are told apart by their roles. Guidelines are left out: they are
    the run's, not the question's.
    """
    marked = _is_conversation(turns)
    shown = [(turn.role, _turn_text(turn, embed=embed, marked=marked)) for turn in turns]
    if not marked:
        return "\n\n".join(text for _, text in shown if text)
    return "\n\n".join(f"@[{_ROLES[role]}]:\n{text}" for role, text in shown if text)


def chat(turns: Sequence[Turn]) -> tuple[Json, ...]:
    """Return a conversation as role and text of each message, nothing for a question that stands alone."""
    if not _is_conversation(turns):
        return ()
    shown = [(turn.role, _turn_text(turn, embed=True, marked=False)) for turn in turns]
    return tuple({"role": role, "content": text} for role, text in shown if text)


def text_of(turn: Turn) -> str:
    """Return a message as text, with its files as their content alone."""
    return "\n\n".join(segment.text.strip() for segment in turn.segments if segment.text.strip())


def _is_conversation(turns: Sequence[Turn]) -> bool:
    visible = [turn for turn in turns if any(not segment.guideline for segment in turn.segments)]
    return len(visible) > 1 or any(turn.role in ("assistant", "tool") for turn in turns)


def _turn_text(turn: Turn, *, embed: bool, marked: bool) -> str:
    texts = (_segment_text(segment, embed=embed, marked=marked) for segment in turn.segments)
    return "\n\n".join(text for text in texts if text)


def _segment_text(segment: Segment, *, embed: bool, marked: bool) -> str:
    if not segment.path:
        return segment.text
    if segment.guideline:
        return f"<Attached: {segment.shown}>" if marked else ""
    if embed and segment.text:
        return f'<file path="{segment.shown}">\n{segment.text.strip()}\n</file>'
    return f'<file: path="{segment.shown}">'
