"""What `qwen --output-format stream-json` prints: messages in the format of Claude Code.

A call without an error ran, whatever its command's exit code, which only Qwen Code's session file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from evaluators.model import Event, NotRun, Transcript, Usage, total_usage
from evaluators.tool_use.calls import pair_calls
from evaluators.transcripts.claude_code import Turns, message_events
from evaluators.transcripts.gemini_cli import SHELL, stated_code
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

_PASSING = frozenset(("system", "stream_event"))
_SILENT = _PASSING | {"assistant", "user", "result"}
_REFUSALS: Mapping[NotRun, re.Pattern[str]] = {
    "denied": re.compile(
        r'Tool "[^"\n]*" (?:is denied by permission rules|is disabled|requires permission)'
        r"|\[Operation Cancelled\] Reason: Tool \S+ requires"
        r"|Qwen Code requires permission to use|Tool execution blocked|Blocked: "
    ),
    "rejected": re.compile(r"\[Operation Cancelled\] Reason: User did not allow tool call"),
    "invalid": re.compile(r'params (?:must|/)|Tool "[^"\n]*" not found|File path must be absolute'),
}
"""The text in place of the result of a call that never ran."""


def parse(raw: bytes) -> Transcript:
    """Return the stream of a Qwen Code session. Raises `UnreadableTranscript` where it holds no event of one."""
    lines, problems = parse_objects(raw, "Qwen Code")
    results = [line for line in lines if line.get("type") == "result"]
    result = results[-1] if results else {}
    listed = result.get("permission_denials")
    ids = (mapping_or_empty(each).get("tool_use_id") for each in (listed if isinstance(listed, list) else ()))
    denied = frozenset(id for id in ids if isinstance(id, str))
    turns, names = Turns(read_qwen_usage), dict[str, str]()
    for line in lines:
        kind = text_or_none(line.get("type")) or ""
        turns.add(line, kind, [_mark(event, names, denied) for event in _events(line, kind)])
    events = check_known(turns.events, lines, "Qwen Code", _SILENT)
    usage = (
        read_qwen_usage(mapping_or_empty(result.get("usage")))
        if "usage" in result
        else _sum_of_messages(lines)
    )
    read = make_transcript(
        events, answer=text_or_none(result.get("result")) or "", usage=usage, problems=problems
    )
    return with_unseen_agents(read, _count_unseen(events))


def read_qwen_usage(tokens: Object) -> Usage:
    """Return the tokens of a message or a session: unlike Anthropic's, `input_tokens` include the cache."""
    read, written = count_or_zero(tokens.get("input_tokens")), count_or_zero(tokens.get("output_tokens"))
    return Usage(read, written, cache_read=count_or_zero(tokens.get("cache_read_input_tokens")))


def refusal_of(text: str) -> NotRun:
    """Return why a call never ran, by the text in place of its result; empty if it ran."""
    return next((why for why, pattern in _REFUSALS.items() if pattern.match(text)), "")


def _sum_of_messages(lines: Iterable[Object]) -> Usage | None:
    """Return the tokens of a session that was ended early, each message once."""
    messages = {
        str(message.get("id")): read_qwen_usage(mapping_or_empty(message["usage"]))
        for message in (mapping_or_empty(line.get("message")) for line in lines)
        if "usage" in message
    }
    return total_usage(messages.values())


def _count_unseen(events: Iterable[Event]) -> int:
    """Return how many sub-agents the stream only says to have started, as it does of those in the background."""
    events = tuple(events)
    seen = {event.metadata.get("agent") for event in events if event.role != "agent"}
    return sum(
        call.event.name in ("agent", "task") and not call.not_run and call.event.id not in seen
        for call in pair_calls(events)
    )


def _events(line: Object, kind: str) -> Iterator[Event]:
    if kind in ("assistant", "user"):
        agent = text_or_none(line.get("parent_tool_use_id")) or ""
        yield from message_events(line, kind, agent)
    elif kind == "result":
        if line.get("is_error"):
            error = text_or_none(mapping_or_empty(line.get("error")).get("message"))
            yield Event("error", text=error or text_or_none(line.get("subtype")))
    elif kind not in _PASSING:
        yield make_unknown_event(line, kind)


def _mark(event: Event, names: dict[str, str], denied: frozenset[str]) -> Event:
    """Return a result with what it really says of its call."""
    if event.type == "tool_call":
        names[str(event.id)] = event.name or ""
    if event.type != "tool_result":
        return event
    failed = event.success is False
    text = event.output if isinstance(event.output, str) else ""
    not_run = (("denied" if event.id in denied else "") or refusal_of(text)) if failed else ""
    is_shell = names.get(str(event.id), SHELL) == SHELL
    unknown_end = bool(not_run) or (not failed and is_shell)
    # Newer releases show the words for the model, with the exit code, of a command that failed or printed nothing.
    code = stated_code(text) if is_shell and not not_run else None
    return structs.replace(
        event, exit_code=code, success=None if unknown_end else not failed, not_run=not_run
    )
