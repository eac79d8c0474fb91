"""What `codex exec --json` prints: threads, turns and items, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.model import Event, Json, Transcript, Usage, total_usage
from evaluators.transcripts.claude_code import CODEX, find_refusal
from evaluators.transcripts.stream import (
    Object,
    check_known,
    count_or_zero,
    make_transcript,
    make_unknown_event,
    mapping_or_empty,
    parse_objects,
    text_or_none,
    with_unseen_agents,
)

_PASSING = frozenset(("thread.started", "turn.started"))
_SILENT = _PASSING | {"turn.completed", "item.started", "item.updated", "item.completed"}
_CALLS = frozenset(("command_execution", "mcp_tool_call", "file_change", "web_search", "collab_tool_call"))
_FAILED = frozenset(("failed", "declined"))


def parse(raw: bytes) -> Transcript:
    """Return the stream of a Codex session. Raises `UnreadableTranscript` where it holds no event of one.

    The answer is the last message of the assistant; also understood where the output is one JSON object
    with `messages`, `response` or `output`.
    """
    lines, problems = parse_objects(raw, "Codex")
    reader = _Reader()
    if len(lines) == 1 and "type" not in lines[0] and (answer := _answer(lines[0])):
        return make_transcript([Event("message", role="assistant", text=answer)], problems=problems)
    events = check_known((event for line in lines for event in reader.events(line)), lines, "Codex", _SILENT)
    read = make_transcript(events, usage=reader.usage, problems=problems)
    return with_unseen_agents(read, len(reader.agents))


class _Reader:
    """Remembers which items have begun, and what was used."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.agents: set[str] = set()
        """The threads of sub-agents that were started."""
        self._begun: set[str] = set()

    def events(self, line: Object) -> Iterator[Event]:
        kind = text_or_none(line.get("type")) or ""
        if kind.startswith("item."):
            yield from self._item(mapping_or_empty(line.get("item")), done=kind == "item.completed")
        elif kind == "turn.completed":
            self.usage = total_usage([self.usage, read_codex_usage(mapping_or_empty(line.get("usage")))])
        elif kind in ("turn.failed", "error"):
            yield Event("error", text=_message(line.get("error", line.get("message"))))
        elif kind not in _PASSING:
            yield make_unknown_event(line, kind)

    def _item(self, item: Object, *, done: bool) -> Iterator[Event]:
        kind = text_or_none(item.get("type")) or ""
        if kind in _CALLS:
            yield from self._call(item, kind, done=done)
        elif not done:
            return
        elif kind in ("agent_message", "response", "output"):
            text = _text(next((item[name] for name in ("text", "content", "output") if name in item), None))
            yield Event("message", _id(item), role="assistant", text=text)
        elif kind in ("reasoning", "todo_list"):
            yield Event(
                "model_step", _id(item), kind, text=text_or_none(item.get("text")), input=item.get("items")
            )
        elif kind == "error":
            yield Event("error", _id(item), text=_message(item.get("message")))
        else:
            yield make_unknown_event(item, kind)

    def _call(self, item: Object, kind: str, *, done: bool) -> Iterator[Event]:
        id = _id(item)
        if id is None or id not in self._begun:
            command, server = text_or_none(item.get("command")), text_or_none(item.get("server"))
            about: dict[str, Json] = {"server": server} if server else {}
            yield Event("tool_call", id, _name(item, kind), command, _input(item, kind), metadata=about)
        if id is not None:
            self._begun.add(id)
        if done:
            if kind == "collab_tool_call" and item.get("tool") == "spawn_agent":
                self.agents.update(_threads(item))
            yield _result(item, kind)


def read_codex_usage(tokens: Object) -> Usage:
    """Return the tokens of a turn or session: as with OpenAI's API, input includes the cache, output reasoning."""
    return Usage(
        input=count_or_zero(tokens.get("input_tokens")),
        output=count_or_zero(tokens.get("output_tokens")),
        cache_read=count_or_zero(tokens.get("cached_input_tokens")),
        cache_write=count_or_zero(tokens.get("cache_write_input_tokens")),
        reasoning=count_or_zero(tokens.get("reasoning_output_tokens")),
    )


def _result(item: Object, kind: str) -> Event:
    code: Json = item.get("exit_code")
    status = text_or_none(item.get("status"))
    success = None if status is None else status not in _FAILED
    output = item.get("aggregated_output", item.get("result"))
    error = item.get("error")
    # Why an item never ran; Codex gives -1 as the exit code of a command that did not start.
    printed = text_or_none(item.get("aggregated_output")) or ""
    refusal = find_refusal(printed, CODEX) if kind == "command_execution" and code in (None, -1) else ""
    not_run = refusal or ("denied" if status == "declined" else "")
    return Event(
        "tool_result",
        _id(item),
        _name(item, kind),
        output=error if error is not None else output,
        exit_code=code if isinstance(code, int) and not not_run else None,
        success=None if not_run else False if error is not None else success,
        # A tool's own error comes as its result.
        metadata={"protocol": True} if error is not None and kind == "mcp_tool_call" else {},
        not_run=not_run,
    )


def _threads(item: Object) -> Iterator[str]:
    """Yield the threads that a call started; none for one that failed."""
    named = item.get("receiver_thread_ids")
    threads = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []
    if not threads and text_or_none(item.get("status")) not in _FAILED:
        threads = [_id(item) or ""]
    yield from threads


def _name(item: Object, kind: str) -> str:
    """A command is called by its shell, a tool of a server by its own name."""
    return "shell" if kind == "command_execution" else text_or_none(item.get("tool")) or kind


def _input(item: Object, kind: str) -> Json:
    if kind == "command_execution":
        return {"command": item.get("command")}
    if kind == "mcp_tool_call":
        return item.get("arguments")
    return {name: item[name] for name in ("changes", "query", "prompt") if name in item}


def _id(item: Object) -> str | None:
    return text_or_none(item.get("id"))


def _message(value: Json) -> str:
    return (
        text_or_none(value)
        or text_or_none(mapping_or_empty(value).get("message"))
        or "Codex reported an error."
    )


def _answer(line: Object) -> str:
    """Return the assistant's answer from an object that isn't a stream event."""
    messages = line.get("messages")
    if isinstance(messages, list):
        for message in reversed(messages):
            if mapping_or_empty(message).get("role") == "assistant":
                return _text(mapping_or_empty(message).get("content"))
    response = line.get("response")
    for value in (
        mapping_or_empty(response).get("content"),
        response,
        line.get("output"),
        line.get("content"),
    ):
        if text := _text(value):
            return text
    return ""


def _text(value: Json) -> str:
    """Return a text, or the text of segments."""
    if isinstance(value, list):
        return " \n".join(filter(None, (_text(part) for part in value)))
    fields = mapping_or_empty(value)
    return text_or_none(value) or text_or_none(fields.get("text")) or text_or_none(fields.get("value")) or ""
