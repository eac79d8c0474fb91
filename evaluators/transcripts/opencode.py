"""What `opencode run --format json` prints: parts of messages, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, NotRun, Transcript, Usage, plausible_cost, total_usage
from evaluators.transcripts.claude_code import OPENCODE, find_refusal
from evaluators.transcripts.stream import (
    Object,
    check_known,
    count_or_zero,
    format_milliseconds,
    make_transcript,
    make_unknown_event,
    mapping_or_empty,
    parse_objects,
    text_or_none,
    with_unseen_agents,
)
from evaluators.transcripts.traces import shell_command

_PASSING = frozenset(("step_start", "step_finish"))


def parse(raw: bytes) -> Transcript:
    """Return the stream of an opencode session. Raises `UnreadableTranscript` where it holds no event of one."""
    lines, problems = parse_objects(raw, "opencode")
    steps = [mapping_or_empty(line.get("part")) for line in lines if line.get("type") == "step_finish"]
    usage = read_opencode_usage([mapping_or_empty(step.get("tokens")) for step in steps]) if steps else None
    events = check_known(_read(lines), lines, "opencode", _PASSING)
    read = make_transcript(
        events,
        usage=usage,
        cost_usd=sum_costs([step.get("cost") for step in steps]),
        problems=problems,
    )
    ran = [event for event in events if event.type == "tool_result" and not event.not_run]
    return with_unseen_agents(read, sum(event.name == "task" for event in ran))


def _read(lines: list[Object]) -> list[Event]:
    """Return the events; a step's first event has the step's usage, which opencode reports at its end."""
    events: list[Event] = []
    start = 0
    for line in lines:
        kind = line.get("type")
        if kind == "step_start":
            start = len(events)
        events += _events(line)
        if kind == "step_finish" and start < len(events):
            tokens = mapping_or_empty(mapping_or_empty(line.get("part")).get("tokens"))
            events[start] = structs.replace(events[start], usage=read_opencode_usage([tokens]))
            start = len(events)
    return events


def _events(line: Object) -> Iterator[Event]:
    kind, part = text_or_none(line.get("type")) or "", mapping_or_empty(line.get("part"))
    time = format_milliseconds(line.get("timestamp"))
    if kind == "text":
        yield Event("message", role="assistant", text=text_or_none(part.get("text")), timestamp=time)
    elif kind == "reasoning":
        yield Event("model_step", name=kind, text=text_or_none(part.get("text")), timestamp=time)
    elif kind == "tool_use" and part:
        yield from call_events(part)
    elif kind == "error":
        yield Event("error", text=_failure(line.get("error")), timestamp=time)
    elif kind not in _PASSING:
        yield make_unknown_event(line, kind)


def call_events(part: Object) -> Iterator[Event]:
    """Yield a tool's call and result: opencode reports both in one part; a running call in an export has none."""
    state = mapping_or_empty(part.get("state"))
    id, name, arguments = text_or_none(part.get("callID")), text_or_none(part.get("tool")), state.get("input")
    began, ended = (mapping_or_empty(state.get("time")).get(key) for key in ("start", "end"))
    line = shell_command(name, arguments)
    yield Event("tool_call", id, name, line, arguments, timestamp=format_milliseconds(began))
    if state.get("status") in ("pending", "running"):
        return
    code = mapping_or_empty(state.get("metadata")).get("exit")
    not_run = "invalid" if name == "invalid" else _not_run(state)
    if not not_run and line is not None and state.get("status") == "error" and "metadata" not in state:
        # A command that has started has metadata. Plugins refuse in words of their own.
        not_run = "denied"
    yield Event(
        "tool_result",
        id,
        name,
        output=state.get("output", state.get("error")),
        exit_code=int_or_none(code),
        success=None if not_run else _has_succeeded(state),
        timestamp=format_milliseconds(ended),
        seconds=_between(began, ended),
        not_run=not_run,
    )


def _not_run(state: Object) -> NotRun:
    error = text_or_none(state.get("error")) or ""
    refusal = find_refusal(error, OPENCODE) if state.get("status") == "error" else ""
    # An aborted command that printed something ran.
    return (
        ""
        if refusal == "cancelled" and bool(mapping_or_empty(state.get("metadata")).get("output"))
        else refusal
    )


def _has_succeeded(state: Object) -> bool | None:
    """Return whether a call succeeded, None for one that somebody ended."""
    metadata, output = mapping_or_empty(state.get("metadata")), text_or_none(state.get("output")) or ""
    if state.get("status") == "error":
        return (
            None if find_refusal(text_or_none(state.get("error")) or "", OPENCODE) == "cancelled" else False
        )
    # A command that was aborted or took too long is "completed", too, with null as its exit code.
    was_ended = "exit" in metadata and metadata["exit"] is None
    if was_ended and "User aborted the command" in output[-1000:]:
        return None
    return state.get("status") == "completed" and not was_ended


def _between(began: Json, ended: Json) -> float | None:
    known = isinstance(began, int | float) and isinstance(ended, int | float)
    return (ended - began) / 1000 if known else None


def _failure(error: Json) -> str:
    fields = mapping_or_empty(error)
    message = text_or_none(mapping_or_empty(fields.get("data")).get("message")) or text_or_none(
        fields.get("message")
    )
    return text_or_none(error) or message or text_or_none(fields.get("name")) or "opencode reported an error."


def read_opencode_usage(steps: list[Object]) -> Usage:
    """Return the tokens. opencode counts the cache apart from input, and reasoning apart from output."""
    return total_usage(map(_step_usage, steps)) or Usage()


def _step_usage(tokens: Object) -> Usage:
    cache = mapping_or_empty(tokens.get("cache"))
    read, written = count_or_zero(cache.get("read")), count_or_zero(cache.get("write"))
    reasoning = count_or_zero(tokens.get("reasoning"))
    return Usage(
        input=count_or_zero(tokens.get("input")) + read + written,
        output=count_or_zero(tokens.get("output")) + reasoning,
        cache_read=read,
        cache_write=written,
        reasoning=reasoning,
    )


def sum_costs(costs: list[Json]) -> float | None:
    """Return the steps' sum in US dollars; None for 0, which opencode reports for models without a known price."""
    return sum(plausible_cost(cost) or 0.0 for cost in costs) or None
