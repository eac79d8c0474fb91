"""What the model server says and how it fails, and the shapes in which three providers say it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What the model says, in the words of no particular provider."""

    text: str = "Paris."
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Names and inputs of the tools that it wants called."""
    usage: tuple[int, int] | None = (100, 20)
    finish: str = ""
    """Why it stops, as OpenAI says it; empty for the usual."""
    recorded: dict[str, Any] | None = None
    """The usage in the provider's own words, in place of `usage`."""


@dataclass(frozen=True)
class Failure:
    """An answer with an error status."""

    status: int
    message: str = "scripted failure"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Broken:
    """A connection that breaks: closed without a word, or answered with what isn't JSON."""

    how: str
    """`closed`, `malformed`, or `silent` for `seconds`."""
    seconds: float = 0.0


Turn = Answer | Failure | Broken


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Batch:
    """One batch that somebody handed in."""

    id: str
    requests: list[dict[str, Any]]
    metadata: dict[str, str]
    looks: int = 0


@dataclass
class Script:
    """What the server does next and what it has seen."""

    turns: list[Turn] = field(default_factory=list)
    """Answers in order; afterwards it gives `answer` to everything."""
    answer: Callable[[str], Turn] = lambda prompt: Answer()
    """Answers by the last message's text: the only way within batches, which have no order."""
    looks_until_done: int = 0
    """So many times a batch is still in progress when it is looked at."""
    looking: Callable[[], None] = lambda: None
    """Called before a batch is looked at."""
    batch_status: str = "completed"
    """What becomes of a batch."""
    batch_errors: frozenset[str] = frozenset()
    """Texts whose requests end as errors within a batch."""
    submitting: list[Turn] = field(default_factory=list)
    """Failures of handing in a batch or its file."""
    seen: list[Seen] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)

    def requests(self, end: str) -> list[Seen]:
        """Return the requests whose path ends so."""
        return [each for each in self.seen if each.path.split("?")[0].endswith(end)]


def last_text(body: dict[str, Any]) -> str:
    """Return the text of the last message of a request."""
    content = body["messages"][-1].get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def openai_body(model: str, answer: Answer) -> dict[str, Any]:
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(answer.calls, 1)
    ]
    usual = "tool_calls" if calls else "stop"
    message = {
        "role": "assistant",
        "content": answer.text or None,
        **({"tool_calls": calls} if calls else {}),
    }
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish or usual}],
    }
    if answer.recorded is not None:
        body["usage"] = answer.recorded
    elif answer.usage:
        read, written = answer.usage
        body["usage"] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return body


def anthropic_body(model: str, answer: Answer) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    parts += [
        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": given}
        for n, (name, given) in enumerate(answer.calls, 1)
    ]
    read, written = answer.usage or (0, 0)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": parts,
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": answer.recorded or {"input_tokens": read, "output_tokens": written},
    }


def gemini_body(model: str, answer: Answer) -> dict[str, Any]:
    read, written = answer.usage or (0, 0)
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": answer.text}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": answer.recorded
        or {"promptTokenCount": read, "candidatesTokenCount": written, "totalTokenCount": read + written},
        "modelVersion": model,
    }
