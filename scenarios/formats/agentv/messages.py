"""Read a case's messages with their files, build its prompts, and find files that evaluators name."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evaluators.grading.evaluator import Message
from evaluators.grading.judges.llm_judge import shows_answer
from evaluators.model import Json
from evaluators.transcripts.reading import decode_text
from scenarios.formats.agentv.file_versions import EvalFileContext
from scenarios.formats.parsed import Location, Problem, describe_kind

FILE_PREFIX = "file://"
_FILE_NAME = re.compile(r"[^\s{}]+\.(?:md|txt|prompt|jinja|j2|tmpl)")
_SCRIPT = re.compile(r"[\w./-]+\.(?:py|js|mjs|cjs|ts|sh|rb|pl)")


def read_prompt(
    value: str, context: EvalFileContext, at: Location, *, needs_answer: bool = True
) -> tuple[str, str, list[Problem]]:
    """Return a judge's template and its file: the text of the named file, or the value itself."""
    if not value:
        return "", "", []
    named = value.startswith(FILE_PREFIX)
    value = value.removeprefix(FILE_PREFIX)
    path = context.find_file(value) if len(value) < 500 and "\n" not in value else None
    if path is None:
        if named or _FILE_NAME.fullmatch(value.strip()):
            return "", "", [context.missing(at, value)]
        return value, "", _without_answer(value, context, at) if needs_answer else []
    context.used.add(path)
    text, problems = file_text(context, path, at)
    if needs_answer:
        problems += _without_answer(text, context, at)
    return text, path, problems


def read_cwd(value: str, context: EvalFileContext, at: Location) -> tuple[str, list[Problem]]:
    """Return a script's working directory in the upload; the eval file's folder by default."""
    if value.strip() in ("", "."):
        return context.folder, []
    folder = context.find_folder(value)
    if folder is None:
        return "", [context.missing(at, value)]
    context.used.add(folder)
    return folder, []


def script_lints(script: str, cwd: str, context: EvalFileContext, at: Location) -> list[Problem]:
    """Return a lint for each script of a command that is missing in the upload."""
    return [
        context.document.problem(
            at,
            f"The script '{name}' is not in the upload's folder '{cwd or '.'}'.",
            fix="Upload it with the eval file, or name it relative to that folder.",
            id="format/missing-script",
            lint=True,
        )
        for name in script_files(script)
        if posixpath.normpath(posixpath.join(cwd, name)) not in context.upload.files
    ]


def script_files(script: str) -> list[str]:
    """Return the scripts that a command names by relative path."""
    try:
        words = shlex.split(script)
    except ValueError:
        words = script.split()
    return [word for word in words if _SCRIPT.fullmatch(word) and not word.startswith("/")]


def _without_answer(template: str, context: EvalFileContext, at: Location) -> list[Problem]:
    if shows_answer(template):
        return []
    what = "The judge's prompt does not include the answer, so case and answer are appended."
    fix = "Add {{candidate_answer}} to the prompt."
    return [context.document.problem(at, what, fix=fix, id="format/judge-without-answer", lint=True)]


@dataclass(frozen=True)
class MessageSegment:
    """One part of a message."""

    text: str = ""
    path: str = ""
    """The path in the upload; empty for text."""
    shown: str = ""
    """The file's name in the case."""
    guideline: bool = False


@dataclass(frozen=True)
class SegmentedMessage:
    """One message in segments."""

    role: str
    segments: tuple[MessageSegment, ...] = ()


@dataclass
class ReadMessages:
    """Messages as written in the case, and in segments."""

    messages: list[Message] = field(default_factory=list)
    turns: list[SegmentedMessage] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def files(self) -> tuple[str, ...]:
        """The unique paths of files in the question."""
        return tuple(dict.fromkeys(one.path for one in self._segments() if one.path and not one.guideline))

    @property
    def guidelines(self) -> tuple[str, ...]:
        """The unique paths of guideline files."""
        return tuple(dict.fromkeys(one.path for one in self._segments() if one.guideline))

    def _segments(self) -> Iterator[MessageSegment]:
        return (segment for turn in self.turns for segment in turn.segments)


def read_messages(messages: Sequence[Message], context: EvalFileContext, at: Location) -> ReadMessages:
    """Validate messages and find their files."""
    read = ReadMessages()
    for index, message in enumerate(messages):
        here = (*at, index)
        parts, segments, problems = _content(message.content, context, (*here, "content"))
        read.problems += problems
        if message.tool_calls and message.role != "assistant":
            read.problems.append(_calls_of_others(context, here, message.role))
        read.messages.append(message.model_copy(update={"content": parts}))
        read.turns.append(SegmentedMessage(message.role, tuple(segments)))
    return read


def _content(
    value: Json, context: EvalFileContext, at: Location
) -> tuple[Json, list[MessageSegment], list[Problem]]:
    if value is None or isinstance(value, str):
        return value, [MessageSegment(value.strip())] if value and value.strip() else [], []
    if _is_data(value):
        return value, [MessageSegment(json.dumps(value, indent=2, ensure_ascii=False))], []
    if not isinstance(value, list):
        what = f"The content of a message must be text or a list of parts, not {describe_kind(value)}."
        fix = "Write the text, or parts such as '- type: text' with 'value:'."
        return None, [], [context.document.problem(at, what, fix=fix, id="format/wrong-type")]
    parts: list[Json] = []
    segments: list[MessageSegment] = []
    problems: list[Problem] = []
    for index, item in enumerate(value):
        part, segment, more = _part(item, context, (*at, index))
        parts.append(part)
        segments += [segment] if segment else []
        problems += more
    return parts, segments, problems


def _is_data(value: Json) -> bool:
    """Return whether a content is structured data, which is shown as JSON, and not a list of parts."""
    if isinstance(value, dict):
        return bool(value)
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and "type" not in one for one in value)
    )


def _part(
    item: Json, context: EvalFileContext, at: Location
) -> tuple[Json, MessageSegment | None, list[Problem]]:
    if isinstance(item, str):
        item = {"type": "text", "value": item}
    if not isinstance(item, dict):
        what = f"A part of a message must be a mapping, not {describe_kind(item)}."
        fix = "Write '- type: text' or '- type: file' with 'value:'."
        return None, None, [context.document.problem(at, what, fix=fix, id="format/wrong-type")]
    if item.get("type") not in ("text", "file"):
        return item, None, [_other_part(context, at, item.get("type"))]
    value = item.get("value")
    if not isinstance(value, str) or not value.strip():
        what = f"The part of type '{item['type']}' needs text in 'value'."
        fix = "Add 'value:' with the text or the path of the file."
        return (
            item,
            None,
            [context.document.problem((*at, "value"), what, fix=fix, id="format/missing-field")],
        )
    return (
        ({"type": "text", "value": value}, MessageSegment(value.strip()), [])
        if item["type"] == "text"
        else _file(value, context, (*at, "value"))
    )


def _file(
    name: str, context: EvalFileContext, at: Location
) -> tuple[Json, MessageSegment | None, list[Problem]]:
    path = context.find_file(name)
    if path is None:
        return {"type": "file", "value": name}, None, [context.missing(at, name)]
    context.used.add(path)
    part = {"type": "file", "value": name, "path": path}
    text, problems = file_text(context, path, at)
    shown = name.removeprefix("file://").replace("\\", "/").lstrip("/")
    return part, MessageSegment(text, path, shown, context.is_guideline(path)), problems


def file_text(context: EvalFileContext, path: str, at: Location) -> tuple[str, list[Problem]]:
    """Return the text of an uploaded file; a lint and no text if it is binary."""
    try:
        return decode_text(context.upload.files[path]).replace("\r\n", "\n"), []
    except UnicodeDecodeError:
        what = f"'{path}' is not UTF-8 text, so prompts cannot include it."
        fix = "Save it as UTF-8; only agents that open files can read it now."
        return "", [context.document.problem(at, what, fix=fix, id="format/binary-file", lint=True)]


def _other_part(context: EvalFileContext, at: Location, name: Json) -> Problem:
    fix = "Use the types text and file."
    if context.version.is_later:
        what = f"evalhub can't show parts of type '{name}' to agents."
        return context.document.problem((*at, "type"), what, fix=fix, id="format/unsupported-part")
    what = f"Parts of type '{name}' are stored but not shown to agents."
    return context.document.problem((*at, "type"), what, fix=fix, id="format/unknown-part", lint=True)


def _calls_of_others(context: EvalFileContext, at: Location, role: str) -> Problem:
    what = f"A message of role '{role}' cannot have 'tool_calls'."
    fix = "Move 'tool_calls' to an assistant message."
    return context.document.problem((*at, "tool_calls"), what, fix=fix, id="format/misplaced-tool-calls")


_ROLES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


def join_messages(turns: Sequence[SegmentedMessage], *, embed: bool) -> str:
    """Return messages as one text; `embed` includes the content of files instead of their names.

    Several messages are marked with their roles. Guidelines are excluded because they belong to the run.
    """
    marked = _is_conversation(turns)
    shown = [(turn.role, _turn_text(turn, embed=embed, marked=marked)) for turn in turns]
    if not marked:
        return "\n\n".join(text for _, text in shown if text)
    return "\n\n".join(f"@[{_ROLES[role]}]:\n{text}" for role, text in shown if text)


def list_chat_messages(turns: Sequence[SegmentedMessage]) -> tuple[Json, ...]:
    """Return the role and text of each message of a conversation; nothing for a single question."""
    if not _is_conversation(turns):
        return ()
    shown = [(turn.role, _turn_text(turn, embed=True, marked=False)) for turn in turns]
    return tuple({"role": role, "content": text} for role, text in shown if text)


def message_as_text(turn: SegmentedMessage) -> str:
    """Return a message as text with the content of its files."""
    return "\n\n".join(segment.text.strip() for segment in turn.segments if segment.text.strip())


def _is_conversation(turns: Sequence[SegmentedMessage]) -> bool:
    visible = [turn for turn in turns if any(not segment.guideline for segment in turn.segments)]
    return len(visible) > 1 or any(turn.role in ("assistant", "tool") for turn in turns)


def _turn_text(turn: SegmentedMessage, *, embed: bool, marked: bool) -> str:
    texts = (_segment_text(segment, embed=embed, marked=marked) for segment in turn.segments)
    return "\n\n".join(text for text in texts if text)


def _segment_text(segment: MessageSegment, *, embed: bool, marked: bool) -> str:
    if not segment.path:
        return segment.text
    if segment.guideline:
        return f"<Attached: {segment.shown}>" if marked else ""
    if embed and segment.text:
        return f'<file path="{segment.shown}">\n{segment.text.strip()}\n</file>'
    return f'<file: path="{segment.shown}">'
