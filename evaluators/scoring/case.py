"""What evaluators know of a scenario, beside what its author wrote into each of them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from evaluators.model import Json
from evaluators.values import Value


class ExpectedCall(Value):
    """One tool call as a case expects it; without `input` any input will do, `output` is not compared."""

    tool: str
    input: Json = None
    output: Json = None


class Message(Value):
    """One message of a conversation; `content` is a text or a list of parts."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Json = None
    tool_calls: tuple[ExpectedCall, ...] = ()


class Case(Struct, frozen=True):
    """What was asked, and what is expected of the answer. The fields are those of `Criteria`."""

    question: str = ""
    expected_outcome: str = ""
    reference_answer: str = ""
    input_messages: tuple[Message, ...] = ()
    expected_messages: tuple[Message, ...] = ()
    input_files: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()
