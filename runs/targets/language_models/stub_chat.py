"""Convert a conversation over stubs to a chat: messages with tool calls, their results, and tool schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluators.grading.stub_loop import StubMessage
from evaluators.model import Json

ChatMessage = dict[str, Json]
ANYTHING: Json = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True)
class ToolSchema:
    """A tool as the model sees it."""

    name: str
    description: str = ""
    parameters: Json = None
    """JSON Schema of its input; None allows any object."""


def schemas_of(tools: Sequence[ToolSchema]) -> list[ChatMessage]:
    """Return tools in the format of OpenAI's chat API."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters or ANYTHING,
            },
        }
        for tool in tools
    ]


def chat_of(messages: Sequence[StubMessage], guidelines: str = "") -> list[ChatMessage]:
    """Return a conversation as a chat. Calls without an id get one, so that each result matches its call."""
    system = [{"role": "system", "content": guidelines}] if guidelines else []
    return system + list(_chat(messages))


def _chat(messages: Sequence[StubMessage]) -> Iterator[ChatMessage]:
    waiting: list[str] = []
    for turn, message in enumerate(messages):
        if message.role == "tool":
            id = waiting.pop(0) if waiting else ""
            yield {"role": "tool", "tool_call_id": id, "content": message.text}
        elif message.calls:
            waiting = [call.id or f"call_{turn}_{place}" for place, call in enumerate(message.calls)]
            calls = [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.input)},
                }
                for id, call in zip(waiting, message.calls, strict=True)
            ]
            yield {"role": "assistant", "content": message.text or None, "tool_calls": calls}
        else:
            yield {"role": message.role, "content": message.text}
