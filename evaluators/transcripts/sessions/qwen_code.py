"""Qwen Code's session files (`~/.qwen/projects/*/chats/*.jsonl`): messages with parts, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from msgspec import structs

from evaluators.model import Event, Json, Usage, total_usage
from evaluators.transcripts.gemini_cli import NOT_RUN, SHELL, stated_code
from evaluators.transcripts.qwen_code import refusal_of
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    keep_whole,
    only_session,
    read_objects,
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


def matches(value: Object) -> bool:
    """Return whether an object is a line of a session of Qwen Code."""
    return "parentUuid" in value and isinstance(mapping_or_empty(value.get("message")).get("parts"), list)


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the file's session. A sub-agent's file has its session's id with the agent's behind it."""
    id, model, events = "", "", list[Event]()
    by_model: dict[str, Usage] = {}
    lines: set[str] = set()
    for line in read_objects(file, problems):
        uuid = text_or_none(line.get("uuid")) or ""
        if uuid in lines:
            # A resumed session may have its history again.
            continue
        lines |= {uuid} if uuid else set()
        id = _id(line) or id
        line_events = list(map(reduce, _events(line)))
        if line.get("type") == "assistant" and "usageMetadata" in line:
            model = text_or_none(line.get("model")) or model
            used = _usage(mapping_or_empty(line["usageMetadata"]))
            by_model[model] = total_usage([by_model.get(model), used]) or used
            line_events[:1] = [structs.replace(event, usage=used) for event in line_events[:1]]
        events += line_events
    read = make_transcript(events, usage=total_usage(by_model.values()), usage_by_model=by_model)
    return only_session(Session(id, read, model, *span_of(event.timestamp for event in events)), "Qwen Code")


def _id(line: Object) -> str:
    session, agent = text_or_none(line.get("sessionId")) or "", text_or_none(line.get("agentId"))
    return f"{session}/{agent}" if agent and session else session


def _usage(tokens: Object) -> Usage:
    """Return a turn's tokens. Asked in OpenAI's protocol, thoughts are part of the candidates; the total tells."""
    read, written = (
        count_or_zero(tokens.get("promptTokenCount")),
        count_or_zero(tokens.get("candidatesTokenCount")),
    )
    thoughts = count_or_zero(tokens.get("thoughtsTokenCount"))
    written = max(written, count_or_zero(tokens.get("totalTokenCount")) - read)
    return Usage(
        read,
        written,
        cache_read=count_or_zero(tokens.get("cachedContentTokenCount")),
        reasoning=min(thoughts, written),
    )


def _events(line: Object) -> Iterator[Event]:
    kind, time = text_or_none(line.get("type")) or "", as_timestamp(line.get("timestamp"))
    parts = mapping_or_empty(line.get("message")).get("parts")
    for part in map(mapping_or_empty, parts if isinstance(parts, list) else ()):
        text = text_or_none(part.get("text"))
        if text and part.get("thought"):
            yield Event("model_step", name="thinking", text=text, timestamp=time)
        elif text and kind in ("user", "assistant"):
            yield Event("message", role=kind, text=text, timestamp=time)
        elif "functionCall" in part:
            call = mapping_or_empty(part["functionCall"])
            name, arguments = text_or_none(call.get("name")), call.get("args")
            id = text_or_none(call.get("id"))
            yield Event("tool_call", id, name, shell_command(name, arguments), arguments, timestamp=time)
        elif "functionResponse" in part:
            about = mapping_or_empty(line.get("toolCallResult"))
            yield _result(mapping_or_empty(part["functionResponse"]), about, time)


def _result(answered: Object, about: Object, time: str | None) -> Event:
    response, name = mapping_or_empty(answered.get("response")), text_or_none(answered.get("name"))
    told, error = text_or_none(response.get("output")), text_or_none(response.get("error"))
    status = about.get("status") or ("success" if error is None else "error")
    not_run = NOT_RUN.get(str(about.get("errorType")), "") or refusal_of(error or "")
    shown: Json = about.get("resultDisplay")
    unknown = bool(not_run) or status == "cancelled" or (name == SHELL and status == "success")
    return Event(
        "tool_result",
        text_or_none(answered.get("id")),
        name,
        output=shown if isinstance(shown, str) and shown else told or error,
        exit_code=stated_code(told) if name == SHELL and not not_run else None,
        success=None if unknown else status == "success",
        timestamp=time,
        not_run=not_run,
    )
