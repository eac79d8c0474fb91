"""Convert a task to chat messages and a model's answer to a recording."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from evaluators.grading.stub_loop import ModelCall
from evaluators.model import Json
from runs.targets.language_models.completion import Message, ModelAnswer
from runs.targets.providers.base import Invocation, Recording


def chat_messages(invocation: Invocation) -> list[Message]:
    """Return a task as a chat: its conversation, else its prompt, with guidelines in the system message.

    Leading system messages become one. Later messages of other roles become the assistant's, with the role in
    the first line, because APIs reject a tool's message without its call.
    """
    messages = list(invocation.spec.messages) or [{"role": "user", "content": invocation.prompt}]
    leading: list[str] = (
        [f"[[ ## Guidelines ## ]]\n\n{invocation.guidelines}"] if invocation.guidelines else []
    )
    while messages and messages[0]["role"] == "system":
        leading.append(str(messages.pop(0)["content"]))
    system: list[Message] = [{"role": "system", "content": "\n\n".join(leading)}] if leading else []
    return system + [_message(each) for each in messages]


def _message(message: Json) -> Message:
    role, content = str(message["role"]), message["content"]
    if role in ("user", "assistant"):
        return {"role": role, "content": content}
    return {"role": "assistant", "content": f"@[{role.capitalize()}]:\n{content}"}


def answer_as_recording(answer: ModelAnswer) -> Recording:
    """Return a model's answer as a recording; tool calls become structured events."""
    lines = "\n".join(json.dumps(line, ensure_ascii=False) for line in _call_lines(answer.calls))
    return Recording(
        raw=answer.text.encode("utf-8", "replace"),
        events=lines.encode("utf-8", "replace") or None,
        answer=answer.text,
        exit_code=0,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        price=answer.price,
        seconds=answer.seconds,
        notes=answer.notes,
    )


def _call_lines(calls: Sequence[ModelCall]) -> Iterator[dict[str, Json]]:
    for call in calls:
        yield {"type": "tool_call", "id": call.id, "name": call.name, "input": call.input}
