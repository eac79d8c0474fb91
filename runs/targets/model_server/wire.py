"""Write an answer in the four wire formats of models, whole and as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from runs.targets.model_server.conversation import compact_json
from runs.targets.model_server.script import TokenCounts

STREAMED = ":streamGenerateContent"
"""The end of Gemini's address for streams; requests in the other formats say what they want."""
Event = tuple[str, dict[str, Any] | str]
"""Name of a server-sent event, empty for none, and its data."""


@dataclass(frozen=True)
class ScriptedReply:
    """One answer: a text, or a call of a tool with its arguments as JSON."""

    id: str
    model: str
    text: str = ""
    tool: str = ""
    arguments: str = "{}"
    usage: TokenCounts = field(default_factory=TokenCounts)
    namespace: str = ""
    """Of the tool, where the agent groups its tools."""
    also: tuple[ScriptedReply, ...] = ()
    """Further calls in the same answer."""

    @property
    def parts(self) -> tuple[ScriptedReply, ...]:
        """Return the answer's calls, or the only text."""
        return (self, *self.also)


@dataclass(frozen=True)
class Wire:
    """One format: an answer as a whole, and as events."""

    whole: Callable[[ScriptedReply], dict[str, Any]]
    events: Callable[[ScriptedReply], Iterator[Event]]


def _response(reply: ScriptedReply) -> dict[str, Any]:
    used = reply.usage
    usage = {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {
            "cached_tokens": used.cache_read_tokens,
            "cache_write_tokens": used.cache_write_tokens + used.cache_write_1h_tokens,
        },
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.input_tokens + used.output_tokens,
    }
    about = {"id": f"resp_{reply.id}", "object": "response", "created_at": 0, "model": reply.model}
    return {**about, "status": "completed", "output": [*map(_item, reply.parts)], "usage": usage}


def _item(reply: ScriptedReply) -> dict[str, Any]:
    if reply.tool:
        called = {"name": reply.tool, "arguments": reply.arguments, "call_id": f"call_{reply.id}"}
        called |= {"namespace": reply.namespace} if reply.namespace else {}
        return {"type": "function_call", "id": f"fc_{reply.id}", "status": "completed", **called}
    part = {"type": "output_text", "text": reply.text, "annotations": []}
    message = {"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "status": "completed"}
    return {**message, "content": [part]}


def _response_events(reply: ScriptedReply) -> Iterator[Event]:
    whole = _response(reply)
    steps: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    ]
    for index, part in enumerate(reply.parts):
        steps += _item_steps(part, index)
    steps.append({"type": "response.completed", "response": whole})
    for number, step in enumerate(steps):
        yield str(step["type"]), {**step, "sequence_number": number}


def _item_steps(reply: ScriptedReply, index: int) -> list[dict[str, Any]]:
    item = _item(reply)
    place = {"output_index": index, "item_id": item["id"]}
    empty: dict[str, Any] = {"arguments": ""} if reply.tool else {"content": []}
    begun = {**item, "status": "in_progress", **empty}
    steps: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": index, "item": begun}
    ]
    if reply.tool:
        steps.append({"type": "response.function_call_arguments.delta", **place, "delta": reply.arguments})
        steps.append({"type": "response.function_call_arguments.done", **place, "arguments": reply.arguments})
    else:
        part = {**place, "content_index": 0}
        blank = {"type": "output_text", "text": "", "annotations": []}
        steps.append({"type": "response.content_part.added", **part, "part": blank})
        steps.append({"type": "response.output_text.delta", **part, "delta": reply.text})
        steps.append({"type": "response.output_text.done", **part, "text": reply.text})
        steps.append({"type": "response.content_part.done", **part, "part": item["content"][0]})
    steps.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return steps


def _completion(reply: ScriptedReply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool:
        message["tool_calls"] = [*map(_chat_call, reply.parts)]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tool else "stop"}
    return {**_chat(reply, "chat.completion"), "choices": [choice], "usage": _chat_usage(reply)}


def _completion_events(reply: ScriptedReply) -> Iterator[Event]:
    delta: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool:
        delta["tool_calls"] = [{"index": n, **_chat_call(part)} for n, part in enumerate(reply.parts)]
    about, end = _chat(reply, "chat.completion.chunk"), "tool_calls" if reply.tool else "stop"
    yield "", {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]}
    yield "", {**about, "choices": [], "usage": _chat_usage(reply)}
    yield "", "[DONE]"


def _chat(reply: ScriptedReply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 0, "model": reply.model}


def _chat_call(reply: ScriptedReply) -> dict[str, Any]:
    function = {"name": reply.tool, "arguments": reply.arguments}
    return {"id": f"call_{reply.id}", "type": "function", "function": function}


def _chat_usage(reply: ScriptedReply) -> dict[str, Any]:
    used = reply.usage
    return {
        "prompt_tokens": used.input_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cache_read_tokens},
        "completion_tokens": used.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def _message(reply: ScriptedReply, content: list[dict[str, Any]]) -> dict[str, Any]:
    used = reply.usage
    usage = {
        "input_tokens": used.fresh_tokens,
        "cache_read_input_tokens": used.cache_read_tokens,
        "cache_creation_input_tokens": used.cache_write_tokens + used.cache_write_1h_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.cache_write_tokens,
            "ephemeral_1h_input_tokens": used.cache_write_1h_tokens,
        },
        "output_tokens": used.output_tokens,
    }
    about = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}
    reason = {"stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None}
    return {**about, "content": content, **reason, "usage": usage}


def _whole_message(reply: ScriptedReply) -> dict[str, Any]:
    if not reply.tool:
        return _message(reply, [{"type": "text", "text": reply.text}])
    # The whole form has decoded arguments, so nonsense can only be a text.
    return _message(reply, [{**_tool_use(part), "input": _decode(part.arguments)} for part in reply.parts])


def _tool_use(reply: ScriptedReply) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{reply.id}", "name": reply.tool, "input": {}}


def _message_events(reply: ScriptedReply) -> Iterator[Event]:
    end = _message(reply, [])
    reason = {"stop_reason": end["stop_reason"], "stop_sequence": None}
    start = {**end, "stop_reason": None, "usage": {**end["usage"], "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": start}
    for index, part in enumerate(reply.parts):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": part.text}
        if part.tool:
            block, delta = _tool_use(part), {"type": "input_json_delta", "partial_json": part.arguments}
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    yield "message_delta", {"type": "message_delta", "delta": reason, "usage": end["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _gemini_answer(reply: ScriptedReply) -> dict[str, Any]:
    """Return Gemini's answer, which a stream sends in one piece."""
    used = reply.usage
    called: dict[str, Any] = {"functionCall": {"name": reply.tool, "args": _decode(reply.arguments)}}
    content = {"role": "model", "parts": [called if reply.tool else {"text": reply.text}]}
    usage = {
        "promptTokenCount": used.input_tokens,
        "cachedContentTokenCount": used.cache_read_tokens,
        "candidatesTokenCount": used.output_tokens - used.reasoning_tokens,
        "thoughtsTokenCount": used.reasoning_tokens,
        "totalTokenCount": used.input_tokens + used.output_tokens,
    }
    candidate = {"index": 0, "content": content, "finishReason": "STOP"}
    return {
        "responseId": reply.id,
        "modelVersion": reply.model,
        "candidates": [candidate],
        "usageMetadata": usage,
    }


def _generated_events(reply: ScriptedReply) -> Iterator[Event]:
    yield "", _gemini_answer(reply)


def _decode(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def as_event(event: Event) -> bytes:
    """Return an event as it is sent."""
    name, data = event
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else compact_json(data)}\n\n".encode()


WIRES = {
    "/responses": Wire(_response, _response_events),
    "/chat/completions": Wire(_completion, _completion_events),
    "/messages": Wire(_whole_message, _message_events),
    ":generateContent": Wire(_gemini_answer, _generated_events),
    STREAMED: Wire(_gemini_answer, _generated_events),
}
"""Formats by the end of the address that is called."""
