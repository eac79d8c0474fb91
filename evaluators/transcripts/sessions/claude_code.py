"""Session files of Claude Code, `~/.claude/projects/**/*.jsonl`: a message on each line, wrapped in `message`."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import IO

from msgspec import structs

from evaluators.model import Event, Usage, total_usage
from evaluators.transcripts.claude_code import (
    CLAUDE_CODE,
    TaskEnds,
    Turns,
    by_kind,
    by_model,
    find_refusal,
    message_events,
    read_claude_usage,
    with_task_ends,
)
from evaluators.transcripts.sessions.session import (
    Problems,
    Reduce,
    Session,
    Trail,
    keep_whole,
    only_session,
    read_objects,
    span_of,
)
from evaluators.transcripts.sessions.written_once import WrittenOnce, message_key
from evaluators.transcripts.stream import Object, make_transcript, mapping_or_empty, text_or_none


def matches(value: Object) -> bool:
    """Return whether an object is a line of a session of Claude Code."""
    if value.get("type") == "summary":
        return "leafUuid" in value
    message = mapping_or_empty(value.get("message"))
    return (
        value.get("type") in ("assistant", "user")
        and isinstance(value.get("sessionId"), str)
        and (not message or "content" in message)
    )


def parse(file: IO[bytes], problems: Problems, reduce: Reduce = keep_whole) -> Iterator[Session]:
    """Yield the file's session. A subagent's file has its session's id with the agent's behind it."""
    turns, once, ends, hooked, messages = Turns(), WrittenOnce(), TaskEnds(), _HookedCalls(), _Messages()
    id = model = ""
    for line in read_objects(file, problems):
        kind, message = text_or_none(line.get("type")) or "", mapping_or_empty(line.get("message"))
        ends.add_notices(
            text_or_none(line.get("content"))
            or text_or_none(mapping_or_empty(line.get("attachment")).get("prompt"))
            or ""
        )
        hooked.add_progress(line)
        if kind not in ("assistant", "user") or line.get("isMeta") is True:
            continue
        id = id or _id(line)
        messages.add(line, kind, message)
        model = (_model(message) if kind == "assistant" else "") or model
        read = (
            hooked.mark(_mark_refused(event, line), line)
            for event in message_events(line, kind, _agent(line, id))
        )
        turns.add(line, kind, map(reduce, once.first(read, text_or_none(message.get("id")) or "")))
    events = with_task_ends(turns.events, ends)
    places = [at for at, event in enumerate(events) if event.type == "tool_call"]
    trail = messages.trail(id, dict(zip(places, once.calls, strict=True)))
    used = trail.tokens.values()
    content = make_transcript(
        events, usage=total_usage(usage for _, usage in used), usage_by_model=by_model(used)
    )
    times = span_of(event.timestamp for event in events)
    return only_session(Session(id, content, model, *times, trail), "Claude Code")


class _Messages:
    """The messages of a file: their tokens, and which are copies of another session's."""

    def __init__(self) -> None:
        self._usages: dict[str, tuple[str, Usage]] = {}
        """The model and usage of each message, which is repeated for each of its blocks."""
        self._own: set[str] = set()
        """Those that the file doesn't mark as copies."""
        self._digests: set[int] = set()
        self._forked: set[str] = set()
        self._root = ""

    def add(self, line: Object, kind: str, message: Object) -> None:
        """Take a line with a message or a block of one."""
        origin = mapping_or_empty(line.get("forkedFrom"))
        uuids = [
            uuid for uuid in (text_or_none(origin.get("messageUuid")), text_or_none(line.get("uuid"))) if uuid
        ]
        self._digests.update(map(_digest, uuids))
        self._root = self._root or next(iter(uuids), "")
        self._forked.update(filter(None, (text_or_none(origin.get("sessionId")),)))
        if kind == "assistant":
            key = message_key(message.get("id") or line.get("uuid"))
            self._usages[key] = _model(message), read_claude_usage(mapping_or_empty(message.get("usage")))
            self._own.update(() if origin else (key,))

    def trail(self, id: str, calls: dict[int, tuple[str, ...]]) -> Trail:
        """Return what links the session of this id to others; `calls` are the keys of its calls by place."""
        return Trail(
            frozenset(self._digests),
            # A sub-agent may begin with the messages of the session that asked it.
            frozenset(self._forked or ({id.partition("/")[0]} if "/" in id else ())),
            self._root,
            calls,
            {key: used for key, used in self._usages.items() if key in self._own},
            frozenset(self._usages),
        )


def _id(line: Object) -> str:
    session_id, agent = text_or_none(line.get("sessionId")) or "", text_or_none(line.get("agentId"))
    return f"{session_id}/{agent}" if agent and line.get("isSidechain") is True else session_id


def _agent(line: Object, session: str) -> str:
    """Return the sub-agent that a line is of, in the file of the session that asked it; empty for the session's own."""
    agent = text_or_none(line.get("agentId")) or "sidechain"
    is_other = line.get("isSidechain") is True and not session.endswith(f"/{agent}")
    return agent if is_other else ""


def _model(message: Object) -> str:
    name = text_or_none(message.get("model")) or ""
    return "" if name.startswith("<") else name


def _mark_refused(event: Event, line: Object) -> Event:
    """Mark a result that the line itself says isn't one: its text may hold the person's own words."""
    if event.type != "tool_result" or event.not_run:
        return event
    said = line.get("toolUseResult")
    if isinstance(said, str) and (why := find_refusal(said.removeprefix("Error: "), CLAUDE_CODE)):
        return structs.replace(event, success=None, exit_code=None, not_run=why)
    if mapping_or_empty(said).get("interrupted") is True:
        return structs.replace(event, success=None, exit_code=None)
    by = text_or_none(mapping_or_empty(line.get("permissionDecision")).get("source"))
    return by_kind(event, line.get("toolDenialKind"), by_person=by != "config")


class _HookedCalls:
    """Finds commands that a hook denied in its own words: since version 2.1, failed commands state an exit code."""

    def __init__(self) -> None:
        self._shells: set[str | None] = set()
        self._hooked: set[str | None] = set()
        """The calls before which a hook ran."""

    def add_progress(self, line: Object) -> None:
        """Take a line, if it says that a hook runs before a call."""
        if mapping_or_empty(line.get("data")).get("hookEvent") == "PreToolUse":
            self._hooked.add(text_or_none(line.get("toolUseID")))

    def mark(self, event: Event, line: Object) -> Event:
        """Return an event of a line, marked as denied if it is an error that no command had."""
        if event.type == "tool_call" and event.command is not None:
            self._shells.add(event.id)
        is_error = event.type == "tool_result" and event.success is False and event.exit_code is None
        if is_error and event.id in self._shells & self._hooked and _states_exit_codes(line):
            return structs.replace(event, success=None, not_run="denied")
        return event


def _states_exit_codes(line: Object) -> bool:
    numbers = (text_or_none(line.get("version")) or "").split(".")[:2]
    return all(each.isdecimal() for each in numbers) and tuple(map(int, numbers)) >= (2, 1)


def _digest(text: str) -> int:
    """Return a text's hash in 64 bits, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())
