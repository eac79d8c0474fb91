"""Read and write the four wire formats of models: requests, whole answers and streams of events."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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


SHELLS = (
    "exec_command",
    "shell_command",
    "shell",
    "Bash",
    "bash",
    "run_shell_command",
    "run_commands",
    "local_shell",
)
"""Names of the shell tool, as agents offer it."""


@dataclass(frozen=True)
class Shell:
    """The tool by which an agent runs a command."""

    name: str
    field: str
    """Name of the argument that takes the command."""
    as_list: bool = False
    several: bool = False
    """Whether it takes several commands."""
    described: bool = False
    """Whether a description is required."""

    def arguments(self, command: str) -> dict[str, Any]:
        """Return the arguments that run a command."""
        value: Any = ["bash", "-lc", command] if self.as_list else [command] if self.several else command
        return {self.field: value, **({"description": "Run a command"} if self.described else {})}


@dataclass(frozen=True)
class AskedConversation:
    """What a request says about its conversation."""

    asked: str
    """The instructions and all texts of the user's side, tool results aside."""
    passed: int
    """Turns of the model so far that called a tool."""
    shell: Shell | None
    id: str
    """The session's name, if the agent sends one."""
    tools: tuple[str, ...] = ()
    """Names of the offered tools."""
    spaces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the tools in each namespace."""

    def spelled(self, tool: str) -> tuple[str, str]:
        """Return a tool as this agent names it, with its namespace.

        `SERVER/TOOL` is a tool of an MCP server, or of a namespace of the agent's own, such as Codex's sub-agents. An offered
        tool that differs in hyphens, dots and the like only is that tool, as agents replace these characters.
        """
        server, slash, name = tool.partition("/")
        if not slash:
            return tool, ""
        for space in (f"mcp__{server}", server):
            if offered_name := _alike(space, self.tools):
                return _alike(name, self.spaces.get(offered_name, ())) or _plain(name), offered_name
        for joined in (f"mcp__{server}__{name}", f"mcp_{server}_{name}", f"{server}_{name}"):
            if offered_name := _alike(joined, self.tools):
                return offered_name, ""
        begun = (f"mcp__{server}__", f"mcp_{server}_", f"{server}_", f"{server}-")
        used = (each for each in begun if any(offered.startswith(each) for offered in self.tools))
        spelled = f"{next(used, begun[0])}{name}"
        return re.sub(r"[^\w-]", "_", spelled, flags=re.ASCII), ""


def read_conversation(body: dict[str, Any], session: str = "") -> AskedConversation:
    """Return the conversation of a request in any of the four formats; `session` is its name in the headers."""
    if "contents" in body:
        body = _of_contents(body)
    messages = _dicts(body.get("input") if "input" in body else body.get("messages"))
    if isinstance(body.get("input"), str):
        messages = [{"role": "user", "content": body["input"]}]
    # Roles of messages that say what to do.
    texts = [
        _text(each.get("content")) for each in messages if each.get("role") in ("user", "system", "developer")
    ]
    asked = "\n".join([*texts, _text(body.get("instructions")), _text(body.get("system"))])
    metadata, tools = body.get("metadata"), _dicts(body.get("tools"))
    id = body.get("prompt_cache_key") or (metadata.get("user_id") if isinstance(metadata, dict) else "")
    names = tuple(name for tool in tools for name, _ in _named_tools(tool))
    spaces = {
        str(space.get("name") or ""): tuple(
            name for tool in _dicts(space.get("tools")) for name, _ in _named_tools(tool)
        )
        for space in tools
        if space.get("type") == "namespace"
    }
    return AskedConversation(
        asked, sum(map(_calls, messages)), _shell(tools), str(id or session), names, spaces
    )


def _alike(name: str, offered: Iterable[str]) -> str:
    """Return the offered name that is the same, else the first that differs in replaced characters only; else empty."""
    offered = list(offered)
    if name in offered:
        return name
    return next((each for each in offered if _plain(each) == _plain(name)), "")


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def _of_contents(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request in Gemini's format as one of chat completions."""
    messages = []
    for content in _dicts(body["contents"]):
        parts = _dicts(content.get("parts"))
        called = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]
        role = "assistant" if content.get("role") == "model" else "user"
        messages.append({"role": role, "content": parts, "tool_calls": called})
    instructions = body.get("systemInstruction")
    declared = [one for tool in _dicts(body.get("tools")) for one in _dicts(tool.get("functionDeclarations"))]
    tools = [
        {**function, "parameters": function.get("parametersJsonSchema") or function.get("parameters")}
        for function in declared
    ]
    system = instructions.get("parts") if isinstance(instructions, dict) else None
    return {"messages": messages, "system": system, "tools": tools}


def _calls(message: dict[str, Any]) -> int:
    """Count a message's calls: an item of its own, a list beside the text, or blocks of the content."""
    if message.get("type") in ("function_call", "local_shell_call", "custom_tool_call"):
        return 1
    blocks = [each for each in _dicts(message.get("content")) if each.get("type") == "tool_use"]
    return len(_dicts(message.get("tool_calls"))) + len(blocks)


def _shell(tools: list[dict[str, Any]]) -> Shell | None:
    offered = {name: schema for tool in tools for name, schema in _named_tools(tool)}
    name = next((name for name in SHELLS if name in offered), None)
    if name is None:
        return None
    schema = offered[name]
    fields = schema.get("properties") or {}
    field = next((each for each in ("cmd", "commands") if each in fields), "command")
    several = field == "commands"
    as_list = not several and (fields.get(field) or {}).get("type") == "array"
    return Shell(name, field, as_list, several, "description" in (schema.get("required") or ()))


def _named_tools(tool: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    function = tool["function"] if isinstance(tool.get("function"), dict) else tool
    name = str(function.get("name") or tool.get("type") or "")
    schema = function.get("parameters") or function.get("input_schema")
    yield name, schema if isinstance(schema, dict) else {}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or "") for part in _dicts(content))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def compact_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"))
