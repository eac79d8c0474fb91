"""Run a conversation with a model whose tools are stubs (tool-forge eval runner, Stub-based multi-turn execution).

Replace `{{seed:path}}` and `{{snapshot:path}}` in expected values (tool-forge eval runner, Template Token Resolution).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from evaluators.model import Event, Json, Transcript, Usage, total_usage
from evaluators.patterns import javascript_json, string_of

TOKEN = re.compile(r"\{\{(seed|snapshot):([^{}]*)\}\}")
_ANY_SOURCE = re.compile(r"\{\{\s*[\w-]+\s*:[^{}]*\}\}")
_INDEXED = re.compile(r"([^\[\]]*)((?:\[[0-9]{1,9}\])+)")


class TokenSources(Struct, frozen=True):
    """The data behind tokens; without a source, all its tokens are unresolved."""

    seed: Json = None
    snapshot: Json = None


class Resolved(Struct, frozen=True):
    """A value with its tokens replaced."""

    text: str | None
    """None if a token is unresolved."""
    unresolved: tuple[str, ...] = ()
    """Tokens without a value, as written."""


def resolve_tokens(value: str, sources: TokenSources) -> Resolved:
    """Return the value with every token replaced; one unresolved token makes the value unresolved.

    Tokens of other sources (`{{env:X}}`) stay as written. Inserted values are not searched for tokens.
    """
    tokens = [(match[0], _look_up(match[1], match[2], sources)) for match in TOKEN.finditer(value)]
    unresolved = tuple(token for token, leaf in tokens if leaf is None)
    if unresolved:
        return Resolved(None, unresolved)
    texts = iter([string_of(leaf) for _, leaf in tokens])
    return Resolved(TOKEN.sub(lambda _: next(texts), value))


def resolve_items(value: str, sources: TokenSources) -> list[Json] | None:
    """Return the list behind a value that is one token; None for other values."""
    match = TOKEN.fullmatch(value)
    leaf = _look_up(match[1], match[2], sources) if match else None
    return leaf if isinstance(leaf, list) else None


def tokens_in(value: str) -> tuple[str, ...]:
    """Return the seed and snapshot tokens of a text, as written."""
    return tuple(match[0] for match in TOKEN.finditer(value))


def other_tokens_in(value: str) -> tuple[str, ...]:
    """Return texts that look like tokens but are not: other sources, or blanks inside."""
    return tuple(match[0] for match in _ANY_SOURCE.finditer(value) if not TOKEN.fullmatch(match[0]))


def _look_up(source: str, path: str, sources: TokenSources) -> Json:
    """Return the value at a path; None if it is missing or null."""
    value = sources.seed if source == "seed" else sources.snapshot
    for segment in path.split("."):
        value = _step(value, segment)
        if value is None:
            return None
    return value


def _step(value: Json, segment: str) -> Json:
    match = _INDEXED.fullmatch(segment)
    if match is None:
        return _key(value, segment)
    child = _key(value, match[1]) if match[1] else value
    for index in match[2][1:-1].split("]["):
        child = child[int(index)] if isinstance(child, list) and int(index) < len(child) else None
    return child


def _key(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, dict) else None


MAX_TURNS = 5


class ModelCall(Struct, frozen=True):
    """A tool call requested by a model."""

    name: str
    input: dict[str, Json] = {}
    id: str | None = None


class ModelTurn(Struct, frozen=True):
    """A model's answer to the messages so far."""

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    usage: Usage | None = None


class StubMessage(Struct, frozen=True):
    """One message of the conversation."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ModelCall, ...] = ()
    """The assistant's tool calls."""
    call: ModelCall | None = None
    """The call that a tool message answers."""


class AskModel(Protocol):
    """Send the messages to a model and return its turn. Exceptions pass through."""

    def __call__(self, messages: Sequence[StubMessage]) -> ModelTurn: ...


class StubRun(Struct, frozen=True):
    """The result of the conversation."""

    transcript: Transcript
    """All calls with the stubs' answers; the answer is the text of the last turn."""
    turns: int
    missing_stubs: tuple[str, ...] = ()
    """Called tools without a stub, once for each call."""
    unfinished: bool = False
    """Whether the model still called tools in its last allowed turn."""

    @property
    def tools_called(self) -> tuple[str, ...]:
        """Tool names in the order of calls, over all turns."""
        return tuple(event.name or "" for event in self.transcript.events if event.type == "tool_call")


def run_stubs(
    prompt: str, stubs: Mapping[str, Json], ask: AskModel, *, max_turns: int = MAX_TURNS
) -> StubRun:
    """Ask until the model calls no more tools, or `max_turns` (at least 1) times.

    The answer is the final response even if it is empty; text beside earlier calls does not count.
    """
    messages = [StubMessage("user", prompt)]
    turns: list[ModelTurn] = []
    while len(turns) < max_turns:
        turn = ask(tuple(messages))
        turns.append(turn)
        if not turn.calls:
            break
        messages.append(StubMessage("assistant", turn.text, turn.calls))
        messages += [
            StubMessage("tool", javascript_json(_answer(call, stubs)), call=call) for call in turn.calls
        ]
    calls = [call for turn in turns for call in turn.calls]
    return StubRun(
        transcript=_transcript(turns, stubs),
        turns=len(turns),
        missing_stubs=tuple(call.name for call in calls if call.name not in stubs),
        unfinished=bool(turns and turns[-1].calls),
    )


def _answer(call: ModelCall, stubs: Mapping[str, Json]) -> Json:
    return stubs.get(call.name, {"error": f'no stub for "{call.name}"'})


def _transcript(turns: Sequence[ModelTurn], stubs: Mapping[str, Json]) -> Transcript:
    answer = turns[-1].text if turns else ""
    return Transcript(
        events=tuple(event for n, turn in enumerate(turns, 1) for event in _events(n, turn, stubs)),
        source="events",
        text="\n".join(turn.text for turn in turns if turn.text),
        answer=answer,
        usage=total_usage(turn.usage for turn in turns),
    )


def _events(number: int, turn: ModelTurn, stubs: Mapping[str, Json]) -> list[Event]:
    events = [Event("message", role="assistant", text=turn.text)] if turn.text else []
    for index, call in enumerate(turn.calls, 1):
        # Models repeat or omit ids, so each pair gets its own.
        id = f"{number}.{index}" + (f" {call.id}" if call.id else "")
        stubbed = call.name in stubs
        events.append(Event("tool_call", id, call.name, input=call.input))
        events.append(Event("tool_result", id, call.name, output=_answer(call, stubs), success=stubbed))
    return events
