"""Session files of Claude Code, `~/.claude/projects/**/*.jsonl`: a message on each line, wrapped in `message`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from msgspec import structs

from evaluators.model import Event, Usage
from evaluators.sessions.session import Problems, Session, objects, only_session, span_of
from evaluators.transcripts.claude_code import Turns, message_events, usage_of
from evaluators.transcripts.stream import Object, mapping, transcript, words

_OWN = re.compile(rb'"(?:sessionId|leafUuid)"\s*:')
_REJECTED = "User rejected tool use"


def matches(head: bytes) -> bool:
    """Return whether a file begins like a session of Claude Code."""
    return _OWN.search(head) is not None


def parse(file: IO[bytes], problems: Problems) -> Iterator[Session]:
    """Yield the file's session. A subagent's file has its session's id with the agent's behind it."""
    turns = Turns()
    usages: dict[str, Usage] = {}
    id = model = ""
    for line in objects(file, problems):
        kind, message = words(line.get("type")) or "", mapping(line.get("message"))
        if kind not in ("assistant", "user") or line.get("isMeta") is True:
            continue
        id = id or _id(line)
        if kind == "assistant":
            model = _model(message) or model
            usages[str(message.get("id"))] = usage_of(mapping(message.get("usage")))
        rejected = kind == "user" and line.get("toolUseResult") == _REJECTED
        read = message_events(line, kind)
        turns.add(line, kind, (_unknown(event) if rejected else event for event in read))
    usage = Usage(sum(used.input for used in usages.values()), sum(used.output for used in usages.values()))
    times = span_of(event.timestamp for event in turns.events)
    found = Session(id, transcript(turns.events, usage=usage if usages else None), model, *times)
    return only_session(found, "Claude Code")


def _id(line: Object) -> str:
    own, agent = words(line.get("sessionId")) or "", words(line.get("agentId"))
    return f"{own}/{agent}" if agent and line.get("isSidechain") is True else own


def _model(message: Object) -> str:
    name = words(message.get("model")) or ""
    return "" if name.startswith("<") else name


def _unknown(event: Event) -> Event:
    """Return the result of a call that a person rejected: it never ran, so it did not fail."""
    return structs.replace(event, success=None, exit_code=None) if event.type == "tool_result" else event
