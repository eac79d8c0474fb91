"""A streamed answer of an endpoint: server-sent events, put together to one JSON object.

Reads pieces of text and tool calls by their names, chunks of chat completions, and the events of OpenAI's
Responses and Anthropic's Messages.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

import msgspec

from evaluators.model import Json
from evaluators.transcripts.paths import MISSING, get_at_path
from evaluators.transcripts.stream import Object, mapping_or_empty, text_or_none

_WHOLE = frozenset(("done", "complete", "completed", "end", "final", "result", "response", "message_stop"))
_CALLED = frozenset(("tool_call", "toolcall", "tool_use", "tool_start", "tool_call_start"))
_RETURNED = frozenset(("tool_result", "toolresult", "tool_end", "tool_call_end", "tool_output"))
_PIECES = ("delta", "text", "content", "token", "chunk", "value")
_RESPONSES = "response."
_KEPT = ("result", "output", "error", "success", "isError", "durationMs", "duration_ms")
"""Fields of a result that are joined to its call."""

_decode = msgspec.json.Decoder().decode


def fold(text: str) -> Object:
    """Return the events as one object: `response`, `toolCalls` if there are any, usage and cost.

    The text is the pieces joined, unless a final event has all of it.
    """
    folded = _Folded()
    for name, data in _events(text):
        folded.take(name, data)
    return folded.value()


def _events(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and data of each event (HTML standard, Server-sent events)."""
    name = ""
    data: list[str] = []
    for line in [*text.split("\n"), ""]:
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value


class _Folded:
    """The events so far, folded into one object."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._whole: str | None = None
        self._calls: list[Object] = []
        self._open: defaultdict[tuple[str, str], deque[Object]] = defaultdict(deque)
        """Calls by id and by name, also those that have a result meanwhile."""
        self._complete_calls: Json = None
        self._in_pieces: dict[str, _CallInPieces] = {}
        self._others: Object = {}
        self._has_events = False

    def take(self, name: str, data: str) -> None:
        if data.strip() == "[DONE]":
            return
        self._has_events = True
        try:
            value = _decode(data)
        except (ValueError, RecursionError):
            value = data
        if isinstance(value, dict):
            self._object(value, (text_or_none(value.get("type")) or name).lower().replace("-", "_"))
        elif isinstance(value, str):
            self._pieces.append(value)

    def value(self) -> Object:
        """Return everything as one object, an empty one if there was no event."""
        if not self._has_events:
            return {}
        for call in self._in_pieces.values():
            call.join()
        calls = self._complete_calls if self._complete_calls is not None else self._calls
        text = "".join(self._pieces) if self._whole is None else self._whole
        return {**self._others, "response": text, **({"toolCalls": calls} if calls else {})}

    def _object(self, value: Object, kind: str) -> None:
        self._carry(value)
        if value.get("error") and kind not in _CALLED | _RETURNED:
            # Chat completions report an error as an event without a type, or beside an empty choice.
            self._others["error"] = value["error"]
        if kind in _CALLED:
            self._add_call(mapping_or_empty(value.get("toolCall", value.get("tool_call"))) or value)
        elif kind in _RETURNED:
            self._add_result(value)
        elif kind == "error":
            self._others["error"] = value.get("error", value.get("message", "unknown"))
        elif kind.startswith(_RESPONSES):
            self._of_responses(value, kind.removeprefix(_RESPONSES))
        elif kind in ("content_block_start", "content_block_delta"):
            # Take an event of Anthropic's Messages; the arguments of a call come in pieces.
            index, block = str(value.get("index")), mapping_or_empty(value.get("content_block"))
            if block.get("type") == "tool_use":
                self._piece_of_call(index, text_or_none(block.get("name")), None)
            elif index in self._in_pieces:
                self._piece_of_call(index, None, text_or_none(get_at_path(value, "delta.partial_json")))
            self._pieces.append(_piece(value))
        elif isinstance(value.get("choices"), list):
            self._choice(value)
        elif kind in _WHOLE or (not kind and not any(key in value for key in _PIECES)):
            self._add_finish(value)
        else:
            self._pieces.append(_piece(value))

    def _carry(self, value: Object) -> None:
        self._others |= {
            key: value[key] for key in ("usage", "cost", "costUsd", "cost_usd") if value.get(key) is not None
        }

    def _of_responses(self, value: Object, kind: str) -> None:
        """Take an event of OpenAI's Responses; most repeat what others say."""
        item = mapping_or_empty(value.get("item"))
        if kind == "output_text.delta":
            self._pieces.append(text_or_none(value.get("delta")) or "")
        elif kind == "output_item.done" and item.get("type") == "function_call":
            self._add_call(item)
        elif kind in ("completed", "incomplete", "failed"):
            ended = mapping_or_empty(value.get("response"))
            self._carry(ended)
            if ended.get("error") or kind == "failed":
                self._others["error"] = ended.get("error") or "unknown"

    def _add_call(self, call: Object) -> None:
        self._calls.append(call)
        for key in _keys(call.get("id"), call.get("name", call.get("tool"))):
            self._open[key].append(call)

    def _add_finish(self, value: Object) -> None:
        text = next(
            (
                value[key]
                for key in ("response", "text", "message", "output", "content")
                if isinstance(value.get(key), str) and value[key]
            ),
            None,
        )
        self._whole = text if text is not None else self._whole
        calls = value.get("toolCalls", value.get("tool_calls", value.get("toolsCalled")))
        self._complete_calls = calls if isinstance(calls, list) else self._complete_calls

    def _add_result(self, value: Object) -> None:
        """Join a result to the call of the same id, else to the first of that name without one."""
        id, name = value.get("id", value.get("toolCallId")), value.get("name", value.get("tool"))
        calls = self._open[_keys(id, name)[0]]
        while calls:
            call = calls.popleft()
            if "returned" not in call:
                call |= {key: value[key] for key in _KEPT if key in value} | {"returned": True}
                return

    def _choice(self, value: Object) -> None:
        """Take a piece of a chat completion; the arguments of a call come in pieces, too."""
        delta = mapping_or_empty(get_at_path(value, "choices[0].delta"))
        self._pieces.append(text_or_none(delta.get("content")) or "")
        calls = delta.get("tool_calls")
        for piece in map(mapping_or_empty, calls if isinstance(calls, list) else ()):
            function = mapping_or_empty(piece.get("function"))
            self._piece_of_call(
                str(piece.get("index")),
                text_or_none(function.get("name")),
                text_or_none(function.get("arguments")),
            )

    def _piece_of_call(self, index: str, name: str | None, arguments: str | None) -> None:
        if index not in self._in_pieces:
            self._in_pieces[index] = _CallInPieces()
            self._calls.append(self._in_pieces[index].call)
        self._in_pieces[index].add(name or "", arguments or "")


class _CallInPieces:
    """A call whose name and arguments come in pieces."""

    def __init__(self) -> None:
        self.call: Object = {}
        self._names: list[str] = []
        self._arguments: list[str] = []

    def add(self, name: str, arguments: str) -> None:
        self._names.append(name)
        self._arguments.append(arguments)

    def join(self) -> None:
        """Join the pieces so far; joining all of them each time would take quadratic time."""
        self.call |= {"name": "".join(self._names), "arguments": "".join(self._arguments)}


def _keys(id: Json, name: Json) -> tuple[tuple[str, str], ...]:
    """Return under which keys a call is found: its id, if it has one, and its name."""
    by_name = ("name", str(name))
    return (by_name,) if id is None else (("id", str(id)), by_name)


def _piece(value: Object) -> str:
    for path in ("delta.text", "delta.content", *_PIECES):
        piece = get_at_path(value, path)
        if piece is not MISSING and isinstance(piece, str):
            return piece
    return ""
