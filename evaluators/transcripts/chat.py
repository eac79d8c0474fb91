"""The answer of an agent's endpoint: a JSON object, a stream of server-sent events, or plain text.

Reads the shapes of endpoints that tool-forge evaluates (eval runner, Agent Endpoint), those of chat completions,
and the values at given paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, Transcript, Usage
from evaluators.transcripts import event_stream
from evaluators.transcripts.paths import MISSING, get_at_path
from evaluators.transcripts.reading import UnreadableTranscript, as_text
from evaluators.transcripts.stream import mapping_or_empty, text_or_none
from evaluators.transcripts.traces import not_run, shell_command

TEXTS = ("response", "text", "message", "output", "content", "choices[0].message")
"""Where the answer is sought, in this order."""
CALLS = ("toolCalls", "tool_calls", "toolsCalled", "message.tool_calls", "choices[0].message.tool_calls")
_PARAMS = ("params", "args", "input", "arguments", "function.arguments")
_READ = ("inputTokens", "input_tokens", "promptTokens", "prompt_tokens")
_WRITTEN = ("outputTokens", "output_tokens", "completionTokens", "completion_tokens")
_ANTHROPIC_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "cachedInputTokens",
    "inputTokenDetails.cacheReadTokens",
)
_REASONING = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "reasoningTokens",
    "outputTokenDetails.reasoningTokens",
)
_MILLISECONDS = ("durationMs", "duration_ms")
_COSTS = ("costUsd", "cost_usd", "cost")
_FIRST_FAILURE = 400

_STREAMED = re.compile(r"\s*(?:event|data|id|retry)?:")
_decode = msgspec.json.Decoder().decode


def parse(raw: bytes) -> Transcript:
    """Return an answer whose shape is one of those known. Raises `UnreadableTranscript`."""
    return read_chat_answer(raw)


def read_chat_answer(raw: bytes, *, text_at: str = "", calls_at: str = "") -> Transcript:
    """Return an answer; given paths are tried before the known ones.

    Raises `UnreadableTranscript` if there is neither text nor a list of calls, or an error in their place.
    """
    text = as_text(raw).strip()
    if not text:
        raise UnreadableTranscript("The endpoint's answer is empty.")
    value = event_stream.fold(text) if _STREAMED.match(text) else _decode_text(text)
    if not isinstance(value, dict):
        answer_text = value if isinstance(value, str) else text
        return Transcript(source="transcript", text=answer_text, answer=answer_text)
    answer = _first(value, (text_at, *TEXTS))
    calls = _first(value, (calls_at, *CALLS))
    if calls is MISSING:
        # The calls in an answer's list of parts, as OpenAI's Responses and Anthropic's Messages have them.
        parts = mapping_or_empty(answer).get("content", answer)
        listed = parts if isinstance(parts, list) else []
        calls = [
            part for part in listed if mapping_or_empty(part).get("type") in ("function_call", "tool_use")
        ] or MISSING
    if answer is MISSING and calls is MISSING:
        raise UnreadableTranscript(
            f"The endpoint's answer has no field for its text (its fields: {', '.join(value) or 'none'}). "
            "Name the field in `output_field` of the target."
        )
    answer_text = _text(answer)
    if value.get("error") and not answer_text and not (isinstance(calls, list) and calls):
        raise UnreadableTranscript(f"The endpoint answers with an error: {_failure(value['error'])}.")
    return _transcript(value, answer_text, calls)


def as_lines(transcript: Transcript) -> bytes:
    """Return the events of an answer as JSON lines of structured events."""
    return b"\n".join(msgspec.json.encode(_line(event)) for event in transcript.events)


def _decode_text(text: str) -> Json:
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        if text[:1] in ("{", "["):
            raise UnreadableTranscript(
                "The endpoint's answer begins like JSON but isn't valid JSON. It may be truncated; check the endpoint's log."
            ) from None
        return text


def _first(value: Json, paths: tuple[str, ...]) -> Json:
    values = (get_at_path(value, path) for path in paths if path)
    return next((each for each in values if each is not MISSING), MISSING)


def _text(value: Json) -> str:
    """Return a text, or the text of a message, of its segments, or of its parts."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    if isinstance(value, dict):
        return _text(_first(value, ("content", "text", "value", "parts")))
    return value if isinstance(value, str) else ""


def _transcript(value: Json, answer: str, calls: Json) -> Transcript:
    listed = calls if isinstance(calls, list) else []
    events = [event for n, call in enumerate(listed, 1) for event in _call(n, call)]
    events += [Event("error", text=_failure(value["error"]))] if value.get("error") else []
    if answer:
        events.append(Event("message", role="assistant", text=answer))
    return Transcript(
        events=tuple(events),
        source="transcript" if calls is MISSING else "events",
        text=answer,
        answer=answer,
        usage=_usage(value.get("usage")),
        cost_usd=_number(_first(value, (*_COSTS, *(f"usage.{name}" for name in _COSTS)))),
    )


def _call(number: int, call: Json) -> Iterator[Event]:
    """Yield a call and its result, if reported; a call is a name or an object."""
    fields = mapping_or_empty(call)
    name = (
        text_or_none(call)
        or text_or_none(fields.get("name"))
        or text_or_none(_first(fields, ("tool", "toolName", "function.name")))
    )
    if not name:
        return
    id, arguments = str(number), _params(_first(fields, _PARAMS))
    yield Event("tool_call", id, name, shell_command(name, arguments), arguments)
    success, milliseconds = _success(fields), _number(_first(fields, _MILLISECONDS))
    output = fields.get("error") or fields.get("result", fields.get("output"))
    if why := not_run(fields.get("not_run", fields.get("notRun"))):
        yield Event("tool_result", id, name, output=output, not_run=why)
        return
    if success is None and milliseconds is None and output is None:
        return
    seconds = None if milliseconds is None else milliseconds / 1000
    yield Event("tool_result", id, name, output=output, success=success, seconds=seconds)


def _params(value: Json) -> Json:
    """Return the arguments as an object, also where they are JSON in a text."""
    if isinstance(value, str):
        try:
            return _decode(value)
        except (ValueError, RecursionError):
            return value
    return {} if value is MISSING or value is None else value


def _success(fields: Mapping[str, Json]) -> bool | None:
    """Return whether a call succeeded, by its `success`, its error or its status; None if unknown."""
    if isinstance(fields.get("success"), bool):
        return bool(fields["success"])
    for holder in (fields, mapping_or_empty(fields.get("result"))):
        if "error" in holder:
            return not holder["error"]
        for flag in ("isError", "is_error"):
            if isinstance(holder.get(flag), bool):
                return not holder[flag]
    status = int_or_none(mapping_or_empty(fields.get("result")).get("status"))
    return None if status is None else status < _FIRST_FAILURE


def _usage(value: Json) -> Usage | None:
    """Return an endpoint's tokens. Only Anthropic counts the cache apart from input, under names of its own."""
    read, written = (_number(_first(value, names)) for names in (_READ, _WRITTEN))
    if read is None and written is None:
        return None
    beside = {name: _count(value, (name,)) for name in _ANTHROPIC_CACHE}
    cache_read, cache_write = beside.values()
    for_hour = min(cache_write, _count(value, ("cache_creation.ephemeral_1h_input_tokens",)))
    return Usage(
        input=int(read or 0) + cache_read + cache_write,
        output=int(written or 0),
        cache_read=cache_read or _count(value, _CACHED),
        cache_write=cache_write - for_hour,
        cache_write_1h=for_hour,
        reasoning=_count(value, _REASONING),
    )


def _count(value: Json, names: tuple[str, ...]) -> int:
    return max(0, int(_number(_first(value, names)) or 0))


def _number(value: Json) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _failure(error: Json) -> str:
    return (
        text_or_none(error)
        or text_or_none(mapping_or_empty(error).get("message"))
        or "The endpoint reported an error."
    )


def _line(event: Event) -> dict[str, Json]:
    milliseconds = None if event.seconds is None else event.seconds * 1000
    fields = {
        "type": event.type,
        "id": event.id,
        "name": event.name,
        "input": event.input,
        "output": event.output,
        "text": event.text,
        "role": event.role,
        "success": event.success,
        "duration_ms": milliseconds,
        "not_run": event.not_run or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
