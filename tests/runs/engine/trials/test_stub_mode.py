from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluators.grading.assertions import ToolCall, calls_of_transcript
from evaluators.grading.stub_loop import ModelCall, ModelTurn, StubMessage
from evaluators.model import Usage
from evaluators.statistics.staleness import RegisteredTool, Registry
from evaluators.transcripts import parse
from runs.engine.tool.offered_tools import parameters_of, tools_of
from runs.engine.workspace.stubs import converse
from runs.errors import ProviderError
from runs.targets.language_models.language_model import stub_model
from runs.targets.language_models.stub_chat import ToolSchema
from runs.targets.providers.base import Invocation
from tests.model_server import Answer, serving
from tests.runs.containments import LOOPBACK
from tests.runs.targets.providers.invocations import invocation_of
from tests.runs.targets.providers.model_targets import target_of

pytestmark = [pytest.mark.spec("tool-forge", "Stubs start a conversation"), pytest.mark.one_database]

STUBS = {"get_weather": {"temp": 3}}
CALL = ModelTurn("Let me see.", (ModelCall("get_weather", {"city": "Oslo"}),), Usage(10, 2))
DONE = ModelTurn("Cold.", usage=Usage(20, 3))


def invocation(**changes: Any) -> Invocation:
    given = {"prompt": "weather?", "key": "k", "timeout_seconds": 60.0, "stubs": STUBS, **changes}
    return invocation_of(workspace=Path("/nonexistent"), scratch=Path("/nonexistent"), **given)


class Scripted:
    """A model that says what it was given to say."""

    cost_usd = 0.5
    price = None
    notes = ("Asked again once.",)

    def __init__(self, *turns: ModelTurn | Exception, seconds: float = 0.0) -> None:
        self.invocation = invocation()
        self.turns = list(turns)
        self.seconds = seconds
        self.limits: list[float] = []
        self.heard: list[Sequence[StubMessage]] = []

    def __call__(self, messages: Sequence[StubMessage]) -> ModelTurn:
        self.heard.append(messages)
        self.limits.append(self.invocation.timeout_seconds)
        time.sleep(self.seconds)
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn


def test_it_records_the_conversation():
    model = Scripted(CALL, DONE)
    recording = converse(invocation(), model)
    transcript = parse(recording.parser, recording.raw, recording.events)
    assert calls_of_transcript(transcript) == (ToolCall("get_weather", {"city": "Oslo"}, True),)
    assert (recording.answer, recording.exit_code, recording.usage) == ("Cold.", 0, Usage(30, 5))
    assert (recording.cost_usd, recording.notes) == (0.5, model.notes)
    assert [(message.role, message.text) for message in model.heard[1]] == [
        ("user", "weather?"),
        ("assistant", "Let me see."),
        ("tool", '{"temp":3}'),
    ]


def test_the_answer_is_the_final_one_even_if_it_is_empty():
    assert converse(invocation(), Scripted(CALL, ModelTurn(""))).answer == ""


def test_a_tool_without_stub_is_reported_and_noted():
    recording = converse(invocation(stubs={}), Scripted(CALL, DONE))
    assert "tools without a stub and got an error: get_weather." in recording.notes[-1]
    (call,) = calls_of_transcript(parse(recording.parser, recording.raw))
    assert call.success is False


def test_the_number_of_turns_is_bounded():
    model = Scripted(CALL, CALL, DONE)
    recording = converse(invocation(), model, max_turns=2)
    assert len(model.turns) == 1
    assert "Raise `maxTurns`" in recording.notes[-1]


def test_the_time_limit_holds_for_the_whole_conversation():
    model = Scripted(CALL, CALL, CALL, seconds=0.4)
    recording = converse(invocation(timeout_seconds=0.7), model)
    assert (recording.timed_out, recording.seconds) == (True, 0.7)
    assert model.limits[0] > 0.69
    assert 0.3 >= model.limits[1] > 0
    assert len(model.limits) == 2


@pytest.mark.parametrize(("kind", "field"), [("timeout", "timed_out"), ("cancelled", "cancelled")])
def test_a_turn_that_was_ended_ends_the_conversation(kind, field):
    recording = converse(invocation(), Scripted(CALL, ProviderError("Ended.", kind=kind)))
    assert getattr(recording, field) is True
    assert recording.notes == ("Ended.",)


def test_a_model_that_cannot_be_asked_is_an_error():
    with pytest.raises(ProviderError) as caught:
        converse(invocation(), Scripted(ProviderError("Away.", kind="endpoint")))
    assert caught.value.kind == "endpoint"


def test_a_model_is_offered_the_registry_and_what_is_stubbed():
    schema = {
        "city": {"type": "string", "description": "Where."},
        "unit": {"type": "string", "optional": True},
    }
    registry = Registry(1, {"get_weather": RegisteredTool("Tells the weather.", "1.0.0", schema)})
    assert tools_of(registry, {"get_weather": {}, "get_time": {}}) == (
        ToolSchema(
            "get_weather",
            "Tells the weather.",
            {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where."},
                    "unit": {"type": "string"},
                },
                "required": ["city"],
            },
        ),
        ToolSchema("get_time"),
    )
    assert tools_of(None, {}) == ()


@pytest.mark.parametrize(
    "schema", [{"type": "object", "properties": {}}, {"$ref": "#/x"}], ids=["type", "ref"]
)
def test_json_schema_is_taken_as_it_is(schema):
    assert parameters_of(schema) == schema


@pytest.mark.parametrize("schema", [None, {}, "z.object()", []])
def test_an_empty_schema_is_none(schema):
    assert parameters_of(schema) is None


@pytest.mark.parametrize("kind", ["litellm", "anthropic"])
def test_a_model_converses_through_litellm(kind):
    with serving() as server:
        server.script.turns = [Answer("", (("get_weather", {"city": "Oslo"}),), (10, 2)), Answer("Cold.")]
        given = invocation()
        model = stub_model(target_of(server, kind), tools_of(None, STUBS), given, LOOPBACK)
        recording = converse(given, model)
    first, second = (seen.body for seen in server.script.seen)
    assert "get_weather" in str(first["tools"])
    assert '{"temp":3}' in str(second["messages"])
    assert (recording.answer, recording.usage) == ("Cold.", Usage(110, 22))
    calls = calls_of_transcript(parse(recording.parser, recording.raw))
    assert calls == (ToolCall("get_weather", {"city": "Oslo"}, True),)
