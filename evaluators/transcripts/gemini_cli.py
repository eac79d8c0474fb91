"""What `gemini --output-format stream-json` prints: messages, calls and results, one JSON object a line.

A result's `success` says that the call ran, not that its command ended with 0: only Gemini CLI's session file has
exit codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from evaluators.model import Event, Json, NotRun, Transcript, Usage, total_usage
from evaluators.tool_use.calls import pair_calls
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
from evaluators.transcripts.traces import as_timestamp, shell_command

NEWEST_MAJOR = 0
"""The last major version whose stream is known."""
SHELL = "run_shell_command"
SUB_AGENT = "invoke_agent"
NOT_RUN: Mapping[str, NotRun] = {
    "policy_violation": "denied",
    "execution_denied": "denied",
    "invalid_tool_params": "invalid",
    "tool_not_registered": "invalid",
}
"""Why a call never ran, by the type of its error; Qwen Code has these words, too."""
_SILENT = frozenset(("init", "message", "result"))
_TAIL = 2_000
"""Characters at a result's end that may be the program's own lines."""
_LISTED = re.compile(
    r"\nExit Code: (-?\d{1,9})\nSignal: (?:0|\(none\)|undefined|null)?(?:\nBackground PIDs: [^\n]*)?"
    r"(?:\nProcess Group PGID: [^\n]*)?\s*\Z"
)
"""How Qwen Code and the first releases of Gemini CLI end what the model reads of every command."""
_BEGIN = re.compile(r"\A\s*(?:<untrusted_context>\s*)?Output: ")
_SHORT = re.compile(
    r"(?:\nError: [^\n]*)?(?:\nExit Code: (?P<code>-?\d{1,9}))?(?P<signal>\nSignal: [^\n]*)?"
    r"(?:\nBackground PIDs: [^\n]*)?\nProcess Group PGID: \d+\s*(?:</untrusted_context>\s*)?\Z"
)
"""How Gemini CLI ends what the model reads; it names the exit code only if it isn't 0."""


def parse(raw: bytes) -> Transcript:
    """Return the stream of a Gemini CLI session. Raises `UnreadableTranscript` where it holds no event of one."""
    lines, problems = parse_objects(raw, "Gemini CLI")
    # Codex kept its sessions as lines of messages, too.
    silent = (
        _SILENT
        if any(line.get("type") in ("init", "tool_use", "tool_result") for line in lines)
        else frozenset(("result",))
    )
    events = check_known(_read(lines), lines, "Gemini CLI", silent)
    by_model = _models_usage(lines)
    text = ""
    for event in events:
        if event.type == "tool_call":
            text = ""
        elif event.type == "message" and event.role == "assistant":
            text = event.text or ""
    read = make_transcript(
        events,
        answer=text,
        usage=total_usage(by_model.values()),
        usage_by_model=by_model,
        problems=problems,
    )
    return with_unseen_agents(read, _count_agents(events, lines))


def _count_agents(events: Iterable[Event], lines: Iterable[Object]) -> int:
    """Return how many sub-agents were started: the stream has the call, and their own calls only as a number."""
    all_calls = pair_calls(tuple(events))
    agents = sum(call.event.name == SUB_AGENT and not call.not_run for call in all_calls)
    stated = max(
        (count_or_zero(mapping_or_empty(line.get("stats")).get("tool_calls")) for line in lines), default=0
    )
    return agents or int(stated > len(all_calls))


def _read(lines: Iterable[Object]) -> Iterator[Event]:
    names: dict[str, str] = {}
    """The tools of the calls so far, which results don't name."""
    said: Event | None = None
    for line in lines:
        kind = text_or_none(line.get("type")) or ""
        if kind == "message" and (event := _message(line)) is not None:
            # An answer comes in pieces.
            if said and said.role == event.role and line.get("delta"):
                said = structs.replace(said, text=f"{said.text}{event.text}")
                continue
            if said:
                yield said
            said = event
            continue
        if said:
            yield said
            said = None
        if kind == "tool_use":
            names[str(line.get("tool_id"))] = text_or_none(line.get("tool_name")) or ""
        yield from _events(line, kind, names)
    if said:
        yield said


def _message(line: Object) -> Event | None:
    """Return a line of a message as an event, None for another program's."""
    content, role = text_or_none(line.get("content")), text_or_none(line.get("role"))
    if content is None or role is None:
        return None
    return Event("message", role=role, text=content, timestamp=as_timestamp(line.get("timestamp")))


def _events(line: Object, kind: str, names: Mapping[str, str]) -> Iterator[Event]:
    time = as_timestamp(line.get("timestamp"))
    if kind == "tool_use" and "tool_name" in line:
        name, arguments = text_or_none(line.get("tool_name")), line.get("parameters")
        yield Event(
            "tool_call",
            text_or_none(line.get("tool_id")),
            name,
            shell_command(name, arguments),
            arguments,
            timestamp=time,
        )
    elif kind == "tool_result" and "tool_id" in line:
        yield _result(line, names.get(str(line.get("tool_id")), ""), time)
    elif kind == "error":
        yield Event("error", text=text_or_none(line.get("message")), timestamp=time)
    elif kind == "result":
        if line.get("status") == "error":
            text = text_or_none(mapping_or_empty(line.get("error")).get("message"))
            yield Event("error", text=text or "Gemini CLI reported an error.", timestamp=time)
    elif kind != "init":
        yield make_unknown_event(line, kind)


def _result(line: Object, name: str, time: str | None) -> Event:
    error = mapping_or_empty(line.get("error"))
    ran = line.get("status") == "success"
    not_run = "" if ran else NOT_RUN.get(str(error.get("type")), "")
    return Event(
        "tool_result",
        text_or_none(line.get("tool_id")),
        name or None,
        output=line.get("output") or error.get("message"),
        success=None if not_run or (ran and name in ("", SHELL)) else ran,
        timestamp=time,
        not_run=not_run,
    )


def _models_usage(lines: Iterable[Object]) -> dict[str, Usage]:
    """Return the session's tokens by model, as its last result has them; empty without one."""
    results = [mapping_or_empty(line.get("stats")) for line in lines if line.get("type") == "result"]
    stats = results[-1] if results else {}
    models = mapping_or_empty(stats.get("models"))
    if not models and "input_tokens" in stats:
        models = {"": stats}
    return {name: _usage(mapping_or_empty(tokens)) for name, tokens in models.items()}


def _usage(tokens: Object) -> Usage:
    """Return a model's tokens: input includes the cache; the rest of the total is reasoning."""
    read, written = count_or_zero(tokens.get("input_tokens")), count_or_zero(tokens.get("output_tokens"))
    thought = max(0, count_or_zero(tokens.get("total_tokens")) - read - written)
    return Usage(read, written + thought, cache_read=count_or_zero(tokens.get("cached")), reasoning=thought)


def stated_code(told: Json, shown: Json = None) -> int | None:
    """Return the exit code in Gemini CLI's or Qwen Code's message to its model about a command; None if there is none.

    `shown` is the command's output alone, whose last lines may read like the program's own. A command that a signal
    ended has no code.
    """
    if not isinstance(told, str):
        return None
    if told.startswith("Command: "):
        listed = _LISTED.search(told[-_TAIL:])
        return int(listed[1]) if listed else None
    if not (start := _BEGIN.match(told)):
        return None
    rest = told[start.end() :]
    if isinstance(shown, str) and shown and rest.startswith(shown):
        rest = rest[len(shown) :]
    ended = _SHORT.search(rest[-_TAIL:])
    return int(ended["code"] or 0) if ended and not ended["signal"] else None
