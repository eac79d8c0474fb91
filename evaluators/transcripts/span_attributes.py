"""The attributes of a span, whichever way an exporter writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from evaluators.model import Json
from evaluators.transcripts.stream import json_or_none

_MODEL_OPERATIONS = frozenset(("chat", "text_completion", "generate_content"))
_CONTAINER_OPERATIONS = frozenset(("invoke_agent", "create_agent", "invoke_workflow"))
_OUTPUT = re.compile(r"llm\.output_messages\.(\d+)\.message\.(content|role)")
_CALL = re.compile(r"(llm\.output_messages\.\d+\.message\.tool_calls\.\d+\.tool_call)\.id")
_ANSWERED = re.compile(r"(llm\.input_messages\.\d+\.message)\.tool_call_id")


class Span(Struct, frozen=True):
    """One span with what is read of it."""

    raw: Mapping[str, Json]
    id: str | None
    name: str
    began: str
    """ISO 8601; empty where it does not say."""
    attributes: dict[str, Json]
    failed: bool = False
    failure: str = ""
    ended: str = ""
    trace: str = ""
    """The id of its trace."""

    @property
    def operation(self) -> str:
        """What the GenAI conventions call it, such as chat or execute_tool."""
        return str(self.attributes.get("gen_ai.operation.name") or "").lower()

    @property
    def kind(self) -> str:
        """What OpenInference calls it, such as LLM or TOOL."""
        return str(self.attributes.get("openinference.span.kind") or "").upper()

    @property
    def is_tool(self) -> bool:
        """Whether it is the execution of a tool."""
        return (
            self.operation == "execute_tool"
            or self.kind == "TOOL"
            or self.attributes.get("ai.operationId") == "ai.toolCall"
            or self.attributes.get("traceloop.span.kind") == "tool"
        )

    @property
    def is_model(self) -> bool:
        """Whether it is a call of a model."""
        sdk = str(self.attributes.get("ai.operationId") or "")
        return (
            self.operation in _MODEL_OPERATIONS
            or self.kind == "LLM"
            or sdk.endswith((".doGenerate", ".doStream"))
            or self.attributes.get("llm.request.type") in ("chat", "completion")
        )

    @property
    def is_container(self) -> bool:
        """Whether it is the span of an agent or a workflow around those of its models and tools."""
        return (
            self.operation in _CONTAINER_OPERATIONS
            or self.kind in ("AGENT", "CHAIN")
            or "ai.operationId" in self.attributes
            or self.attributes.get("traceloop.span.kind") in ("workflow", "task", "agent")
        )

    def first(self, *names: str) -> Json:
        """Return the first of these attributes that is there, else None."""
        return next((self.attributes[name] for name in names if self.attributes.get(name) is not None), None)


def read_attributes(value: Json) -> dict[str, Json]:
    """Return attributes by their dotted names, from OTLP's list of pairs or from a mapping, flat or nested."""
    if isinstance(value, list):
        pairs = [(item.get("key"), item.get("value")) for item in value if isinstance(item, dict)]
        return {key: _otlp(item) for key, item in pairs if isinstance(key, str)}
    return dict(_flat("", value)) if isinstance(value, dict) else {}


def json_value(value: Json) -> Json:
    """Return what a text says as JSON where it is an object or a list, else the value itself."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def read_span_messages(has: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield role and text of a model's answers."""
    parts = json_value(has.get("gen_ai.output.messages"))
    if isinstance(parts, list):
        for message in parts:
            if isinstance(message, dict) and (text := _message_text(message)):
                yield str(message.get("role") or "assistant"), text
        return
    numbered = sorted({int(found[1]) for name in has if (found := _OUTPUT.fullmatch(name))})
    for number in numbered:
        message = f"llm.output_messages.{number}.message"
        content = has.get(f"{message}.content")
        if isinstance(content, str) and content:
            yield str(has.get(f"{message}.role") or "assistant"), content
    for name in ("ai.response.text", "gen_ai.completion.0.content"):
        said = has.get(name)
        if not numbered and isinstance(said, str) and said:
            yield "assistant", said
            return
    output = has.get("output.value")
    if not numbered and isinstance(output, str) and output:
        yield "assistant", output


def called_in(has: Mapping[str, Json]) -> Iterator[tuple[str, str, Json]]:
    """Yield id, name and arguments of the calls that a model's answers hold."""
    for part in _parts(has.get("gen_ai.output.messages"), "tool_call"):
        if part.get("id") and part.get("name"):
            yield str(part["id"]), str(part["name"]), json_value(part.get("arguments"))
    for id, call in _numbered(has, _CALL):
        if name := has.get(f"{call}.function.name"):
            yield id, str(name), json_value(has.get(f"{call}.function.arguments"))


def results_in(has: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield the calls' ids and what they returned, of the messages that a model was asked with."""
    for part in _parts(has.get("gen_ai.input.messages"), "tool_call_response"):
        if part.get("id"):
            yield str(part["id"]), part.get("response", part.get("result"))
    for id, message in _numbered(has, _ANSWERED):
        yield id, has.get(f"{message}.content")


def entity_arguments(value: Json) -> Json:
    """Return the arguments in what traceloop writes of a tool's input; a single one without its name as it is."""
    arguments = json_value(value)
    if not isinstance(arguments, dict):
        return arguments
    for name in ("inputs", "kwargs"):
        if isinstance(arguments.get(name), dict) and arguments[name]:
            return arguments[name]
    unnamed = arguments.get("args")
    if isinstance(unnamed, list) and len(unnamed) == 1:
        return unnamed[0]
    return json_value(arguments["input_str"]) if isinstance(arguments.get("input_str"), str) else arguments


def entity_result(value: Json) -> Json:
    """Return the result in what traceloop writes of a tool's output: always JSON, texts too."""
    decoded = json_or_none(value) if isinstance(value, str) else None
    return value if decoded is None else decoded


def _numbered(has: Mapping[str, Json], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the ids that OpenInference's numbered attributes name, each with its attributes' prefix."""
    for name, id in has.items():
        if id and (match := pattern.fullmatch(name)):
            yield str(id), match[1]


def _parts(value: Json, type: str) -> Iterator[Mapping[str, Json]]:
    listed = json_value(value)
    for message in listed if isinstance(listed, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == type:
                yield part


def _message_text(message: Mapping[str, Json]) -> str:
    parts = message.get("parts")
    if isinstance(parts, list):
        texts = [
            part.get("content") for part in parts if isinstance(part, dict) and part.get("type") == "text"
        ]
        return "\n".join(text for text in texts if isinstance(text, str))
    content = message.get("content")
    return content if isinstance(content, str) else ""


def _otlp(value: Json) -> Json:
    """Return the plain value of OTLP's `{"stringValue": …}`."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "intValue":
        return int(inner) if str(inner).lstrip("-").isdigit() else inner
    if kind == "arrayValue":
        values = inner.get("values") if isinstance(inner, dict) else None
        return [_otlp(item) for item in values] if isinstance(values, list) else []
    if kind == "kvlistValue":
        return read_attributes(inner.get("values")) if isinstance(inner, dict) else {}
    return inner


def _flat(prefix: str, value: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for key, item in value.items():
        name = f"{prefix}{key}"
        yield name, item
        if isinstance(item, dict):
            yield from _flat(name + ".", item)
