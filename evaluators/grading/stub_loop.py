"""Run a conversation with a model whose tools are stubs (tool-forge eval runner, Stub-based multi-turn execution)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from evaluators.model import Event, Json, Transcript, Usage, total_usage
from evaluators.patterns import javascript_json

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
