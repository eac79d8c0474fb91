"""Gemini CLI's session files (`~/.gemini/tmp/*/chats/session-*`): lines that add to a session, or one JSON object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import IO

from msgspec import structs

from evaluators.model import Event, NotRun, Usage, total_usage
from evaluators.transcripts.gemini_cli import SHELL, stated_code
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    keep_whole,
    only_session,
    read_objects_or_one,
    span_of,
)
from evaluators.transcripts.stream import (
    Object,
    count_or_zero,
    make_transcript,
    mapping_or_empty,
    text_or_none,
)
from evaluators.transcripts.traces import as_timestamp, shell_command

_DENIED = re.compile(r'Tool execution (?:for "[^"\n]*" )?denied by policy\.|Tool execution blocked: ')
_INVALID = re.compile(r"params must |params/|Tool \"[^\"\n]*\" not found|Invalid parameters")
_STARTED = re.compile(r"before it could complete|Output: ")


def matches(value: Object) -> bool:
    """Return whether an object is a session of Gemini CLI or its first line."""
    return isinstance(value.get("sessionId"), str) and isinstance(value.get("projectHash"), str)


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the file's session."""
    id, messages = "", dict[str, Object]()
    for line in read_objects_or_one(file, problems):
        id = text_or_none(line.get("sessionId")) or id
        for message in _messages(line):
            key = text_or_none(message.get("id")) or str(len(messages))
            # A message is written again with each of its calls. One that was taken back was said all the same.
            messages[key] = {**messages.get(key, {}), **message}
    events = [reduce(event) for message in messages.values() for event in _turn(message)]
    by_model = _models_usage(messages.values())
    read = make_transcript(events, usage=total_usage(by_model.values()), usage_by_model=by_model)
    model = next((text_or_none(each.get("model")) or "" for each in _answers(messages.values())), "")
    times = span_of(event.timestamp for event in events)
    return only_session(Session(id, read, model, *times), "Gemini CLI")


def _messages(line: Object) -> Iterator[Object]:
    """Yield the messages that a line adds or changes."""
    if "type" in line and "id" in line:
        yield line
    listed = mapping_or_empty(line.get("$set")).get("messages", line.get("messages"))
    yield from (each for each in map(mapping_or_empty, listed if isinstance(listed, list) else ()) if each)


def _answers(messages: Iterable[Object]) -> list[Object]:
    return [each for each in messages if each.get("type") == "gemini"]


def _models_usage(messages: Iterable[Object]) -> dict[str, Usage]:
    usages: dict[str, Usage] = {}
    for message in _answers(messages):
        model = text_or_none(message.get("model")) or ""
        used = _usage(mapping_or_empty(message.get("tokens")))
        usages[model] = total_usage([usages.get(model), used]) or used
    return usages


def _usage(tokens: Object) -> Usage:
    """Return a turn's tokens: input includes the cache, thoughts are beside output."""
    thoughts = count_or_zero(tokens.get("thoughts"))
    return Usage(
        count_or_zero(tokens.get("input")) + count_or_zero(tokens.get("tool")),
        count_or_zero(tokens.get("output")) + thoughts,
        cache_read=count_or_zero(tokens.get("cached")),
        reasoning=thoughts,
    )


def _turn(message: Object) -> list[Event]:
    """Return a message's events; the first of a model's turn has its usage."""
    events = list(_events(message))
    if events and "tokens" in message:
        events[0] = structs.replace(events[0], usage=_usage(mapping_or_empty(message["tokens"])))
    return events


def _events(message: Object) -> Iterator[Event]:
    time, kind = as_timestamp(message.get("timestamp")), message.get("type")
    content = message.get("content")
    # The text of a message; results that are sent to the model have none.
    parts = content if isinstance(content, list) else [content]
    texts = (text_or_none(part) or text_or_none(mapping_or_empty(part).get("text")) for part in parts)
    text = "\n".join(filter(None, texts))
    if kind == "user":
        # What Gemini CLI itself says first, as if a person had said it.
        if text and not text.startswith("<session_context>"):
            yield Event("message", role="user", text=text, timestamp=time)
    elif kind == "gemini":
        if text:
            yield Event("message", role="assistant", text=text, timestamp=time)
        calls = message.get("toolCalls")
        for call in map(mapping_or_empty, calls if isinstance(calls, list) else ()):
            yield from _call_events(call, time)
    elif kind == "error":
        yield Event("error", text=text, timestamp=time)


def _call_events(call: Object, began: str | None) -> Iterator[Event]:
    id, name, arguments = text_or_none(call.get("id")), text_or_none(call.get("name")), call.get("args")
    yield Event("tool_call", id, name, shell_command(name, arguments), arguments, timestamp=began)
    status = call.get("status")
    if status not in ("success", "error", "cancelled"):
        return
    told, error = _output_and_error(call)
    not_run = _not_run(str(status), error, told)
    code = stated_code(told, call.get("resultDisplay")) if name == SHELL and not not_run else None
    unknown = bool(not_run) or status == "cancelled" or (name == SHELL and status == "success")
    yield Event(
        "tool_result",
        id,
        name,
        output=call.get("resultDisplay") or told or error,
        exit_code=code,
        success=None if unknown else status == "success",
        timestamp=as_timestamp(call.get("timestamp")),
        not_run=not_run,
    )


def _output_and_error(call: Object) -> tuple[str, str]:
    """Return the output and the error of a call that the model saw."""
    parts = call.get("result")
    for part in map(mapping_or_empty, parts if isinstance(parts, list) else ()):
        response = mapping_or_empty(mapping_or_empty(part.get("functionResponse")).get("response"))
        if response:
            return text_or_none(response.get("output")) or "", text_or_none(response.get("error")) or ""
    return "", ""


def _not_run(status: str, error: str, told: str) -> NotRun:
    if status == "cancelled":
        # A command that was running when the person cancelled it ran.
        if _STARTED.search(told) or _STARTED.search(error):
            return ""
        return "rejected" if "denied execution" in error else "cancelled"
    if status != "error":
        return ""
    return "denied" if _DENIED.match(error) else "invalid" if _INVALID.match(error) else ""
