"""Spans of OpenTelemetry as a trace.

Knows the GenAI conventions, OpenInference, Vercel's AI SDK, traceloop and pydantic-ai. Reads OTLP JSON
(`resourceSpans`), a list of spans, or one span a line as file exporters write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from evaluators.json_values import int_or_none
from evaluators.model import Event, EventType, Json, Transcript, Usage, total_usage
from evaluators.tool_use.calls import SKILL_MARK
from evaluators.transcripts.reading import UnreadableTranscript, decode_output, no_events
from evaluators.transcripts.span_attributes import (
    Span,
    called_in,
    entity_arguments,
    entity_result,
    json_value,
    read_attributes,
    read_span_messages,
    results_in,
)
from evaluators.transcripts.traces import as_timestamp, returned_code, shell_command


def parse(raw: bytes) -> Transcript:
    """Return the spans of an export as events. Raises `UnreadableTranscript` where there are none."""
    spans = find_spans(decode_output(raw))
    if spans is None:
        raise UnreadableTranscript(
            "There are no OpenTelemetry spans in it. Export them as OTLP JSON or as one span a line."
        )
    return known_spans(spans)


def known_spans(spans: Sequence[Mapping[str, Json]]) -> Transcript:
    """Return what `read_spans` does. Raises `UnreadableTranscript` where no span is of an agent."""
    transcript = read_spans(spans)
    if spans and transcript.unknown_events == len(transcript.events):
        raise no_events("trace of an agent", (event.name or "" for event in transcript.events))
    return transcript


def find_spans(value: Json) -> list[Mapping[str, Json]] | None:
    """Return the spans in a decoded export, None where it is something else."""
    if isinstance(value, dict):
        if isinstance(resources := value.get("resourceSpans", value.get("resource_spans")), list):
            return [span for resource in resources for span in _of_resource(resource)]
        value = value.get("spans", [value] if "attributes" in value else None)
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(item, dict) and "resourceSpans" in item for item in value):
        return [span for item in value for span in find_spans(item) or ()]
    return value if all(isinstance(item, dict) and "attributes" in item for item in value) else None


def read_spans(raw_spans: Sequence[Mapping[str, Json]]) -> Transcript:
    """Return spans as a transcript, in the order in which they began; one of no known kind is kept raw.

    Spans around others, such as an agent's, are left out: they say again what is in those.
    """
    spans = sorted(_once(map(_span, raw_spans)), key=lambda span: span.began)
    has_tools = any(span.is_tool for span in spans)
    # With spans of tools, messages repeat the same calls.
    by_span = (event for span in spans for event in _events(span))
    events = list(by_span if has_tools else _with_calls_of_messages(spans))
    answers = [event.text for event in events if event.type == "message" and event.role != "user"]
    unknown = sum(event.type == "raw" for event in events)
    return Transcript(
        events=tuple(events),
        source="trace",
        text="\n".join(event.text for event in events if event.text),
        answer=next((text for text in reversed(answers) if text), ""),
        usage=_total(span for span in spans if span.is_model),
        unknown_events=unknown,
    )


def _of_resource(resource: Json) -> Iterator[Mapping[str, Json]]:
    scopes = resource.get("scopeSpans", resource.get("scope_spans")) if isinstance(resource, dict) else None
    for scope in scopes if isinstance(scopes, list) else ():
        spans = scope.get("spans") if isinstance(scope, dict) else None
        yield from (span for span in (spans if isinstance(spans, list) else ()) if isinstance(span, dict))


def _once(spans: Iterable[Span]) -> list[Span]:
    """Return each span once: some exporters write it when it begins and again when it ends."""
    found: dict[tuple[str, str], Span] = {}
    for position, span in enumerate(spans):
        key = (span.trace, span.id or "") if span.id else ("", f"{position}")
        earlier = found.get(key)
        if earlier is None or span.ended or not earlier.ended:
            found[key] = span
    return list(found.values())


def _span(raw: Mapping[str, Json]) -> Span:
    context = raw.get("context")
    status = raw.get("status", raw.get("status_code"))
    status = status if isinstance(status, dict) else {"code": status}
    own_id = raw.get("spanId", raw.get("span_id"))
    trace_id = raw.get("traceId", raw.get("trace_id"))
    if own_id is None and isinstance(context, dict):
        own_id = context.get("span_id", context.get("spanId"))
        trace_id = context.get("trace_id", context.get("traceId"))
    began = raw.get("startTimeUnixNano", raw.get("start_time_unix_nano", raw.get("start_time")))
    code = status.get("code", status.get("status_code"))
    return Span(
        raw=raw,
        id=str(own_id) if own_id is not None else None,
        name=str(raw.get("name") or ""),
        began=_time(began),
        ended=_time(raw.get("endTimeUnixNano", raw.get("end_time_unix_nano", raw.get("end_time")))),
        attributes=read_attributes(raw.get("attributes")),
        failed=code in (2, "2") or str(code).upper().endswith("ERROR"),
        failure=str(status.get("message") or status.get("description") or raw.get("status_message") or ""),
        trace=str(trace_id or ""),
    )


def _time(value: Json) -> str:
    """Return when a span began or ended as ISO 8601, empty where it does not say."""
    text = str(value) if isinstance(value, int | str) else ""
    if text.isdigit():
        moment = datetime.fromtimestamp(int(text[:19]) / 1e9, UTC)
        return moment.isoformat().replace("+00:00", "Z")
    return as_timestamp(text) or ""


def _events(span: Span) -> Iterator[Event]:
    if span.is_tool:
        yield from _tool_events(span)
    elif span.is_model:
        yield from _model_events(span)
    elif not span.is_container:
        yield Event("raw", span.id, span.name, timestamp=span.began or None, metadata=dict(span.raw))


def _with_calls_of_messages(spans: Sequence[Span]) -> Iterator[Event]:
    """Yield the events of spans without a tool's own, with the calls in the model's answers.

    A result is in what the model was asked next. Only its text may say how a command ended.
    """
    lines, answered = dict[str, str | None](), set[str]()
    for span in spans:
        for id, output in results_in(span.attributes) if span.is_model else ():
            if id in lines and id not in answered:
                answered.add(id)
                code = returned_code(output) if lines[id] else None
                yield Event("tool_result", id, output=output, exit_code=code, timestamp=span.began or None)
        yield from _events(span)
        for id, name, arguments in called_in(span.attributes) if span.is_model else ():
            if id not in lines:
                lines[id] = _command(name, arguments)
                yield Event("tool_call", id, name, lines[id], arguments, timestamp=span.ended or None)


def _tool_events(span: Span) -> Iterator[Event]:
    has = span.attributes
    id = _text(span.first("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")) or span.id
    name = _text(span.first(*_NAME)) or span.name
    input = json_value(span.first(*_ARGUMENTS))
    if input is None:
        input = entity_arguments(has.get("traceloop.entity.input"))
    output = json_value(span.first(*_RESULT))
    if output is None:
        output = entity_result(has.get("traceloop.entity.output"))
    line = _command(name, input)
    failed = span.failed or "error.type" in has
    skill = _text(has.get("gen_ai.skill.name"))
    about: dict[str, Json] = {SKILL_MARK: skill} if skill else {}
    yield Event("tool_call", id, name, line, input, timestamp=span.began or None, metadata=about)
    text = (span.failure or str(has.get("error.type") or "failed")) if failed else None
    ended = span.ended or None
    if line is not None:
        # A span's status says whether the tool was carried out, not how its command ended.
        code = _exit_code(has.get("process.exit.code"))
        code = returned_code(output) if code is None else code
        yield Event("tool_result", id, name, output=output, text=text, exit_code=code, timestamp=ended)
        return
    kind: EventType = "error" if failed else "tool_result"
    yield Event(kind, id, name, output=output, text=text, success=not failed, timestamp=ended)


def _exit_code(value: Json) -> int | None:
    """Return an exit code, which some exporters write as text."""
    is_text = isinstance(value, str) and value.removeprefix("-").isdecimal()
    return int(value[:20]) if is_text else int_or_none(value)


def _command(name: str | None, arguments: Json) -> str | None:
    """Return a call's command line, also where it was the only argument, without a name."""
    return shell_command(name, {"command": arguments} if isinstance(arguments, str) else arguments)


def _model_events(span: Span) -> Iterator[Event]:
    time = span.began or None
    model = _text(span.first("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"))
    yield Event("model_step", span.id, model, timestamp=time)
    if span.failed:
        yield Event("error", span.id, model, text=span.failure or "failed", timestamp=time)
    for role, text in read_span_messages(span.attributes):
        yield Event("message", span.id, text=text, role=role, timestamp=time)


_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "tool_call.function.arguments",
    "ai.toolCall.args",
    "input.value",
    "tool.parameters",
)
_RESULT = (
    "gen_ai.tool.call.result",
    "tool_response",
    "output.value",
    "ai.toolCall.result",
)
_INPUT = (
    "gen_ai.usage.input_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
    "gen_ai.usage.prompt_tokens",
)
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
    "gen_ai.usage.completion_tokens",
)
_CACHE_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
)
_CACHE_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "llm.token_count.prompt_details.cache_write",
    "ai.usage.inputTokenDetails.cacheWriteTokens",
)
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "llm.token_count.completion_details.reasoning",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.details.reasoning_tokens",
    "ai.usage.reasoningTokens",
)


def _total(spans: Iterable[Span]) -> Usage | None:
    """Return the tokens of model calls. By all conventions input includes the cache, and output reasoning.

    Some writers leave the cache out of the input. A call that reads more from the cache than its input shows it, and
    decides for its trace.
    """
    used = [(span.trace, usage) for span in spans if (usage := _span_usage(span))]
    exclusive = {trace for trace, (input, _, read, *_) in used if read > input}
    return total_usage(
        Usage(
            input + (read + write if trace in exclusive else 0),
            output,
            cache_read=read,
            cache_write=write,
            reasoning=reasoning,
        )
        for trace, (input, output, read, write, reasoning) in used
    )


def _span_usage(span: Span) -> tuple[int, ...] | None:
    """Return input, output, read from and written to the cache, and reasoning, as stated; None without tokens."""
    if span.first(*_INPUT) is None and span.first(*_OUTPUT) is None:
        return None
    return tuple(
        _count(span.first(*names)) for names in (_INPUT, _OUTPUT, _CACHE_READ, _CACHE_WRITE, _REASONING)
    )


def _count(value: Json) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
