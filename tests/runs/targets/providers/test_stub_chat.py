"""Conversations over stubs with a real model behind HTTP."""

from __future__ import annotations

import pytest

from evaluators.grading.stub_loop import run_stubs
from runs.errors import ProviderError
from runs.targets.language_models.language_model import stub_model
from runs.targets.language_models.stub_chat import ToolSchema
from tests.model_server import Answer, Failure
from tests.runs.targets.providers.model_targets import LOOPBACK, asked, target_of

pytestmark = pytest.mark.one_database

WEATHER = ToolSchema("get_weather", "Tells the weather.", {"type": "object", "properties": {"city": {}}})
TURNS = [Answer("", calls=(("get_weather", {"city": "Bern"}), ("get_time", {}))), Answer("It rains.")]


def model_of(models, kind="litellm", **changes):
    return stub_model(target_of(models, kind), [WEATHER, ToolSchema("get_time")], asked(**changes), LOOPBACK)


@pytest.mark.parametrize("kind", ["litellm", "azure", "anthropic"])
def test_it_goes_on_with_the_stubs_answers(models, kind):
    models.script.turns = list(TURNS)
    model = model_of(models, kind)
    run = run_stubs("Weather in Bern?", {"get_weather": {"rain": True}, "get_time": "noon"}, model)
    assert (run.tools_called, run.turns, run.transcript.answer) == (
        ("get_weather", "get_time"),
        2,
        "It rains.",
    )
    assert (model.usage.input, model.usage.output) == (200, 40)
    assert model.cost_usd > 0


def test_it_offers_the_tools_and_pairs_calls_with_their_answers(models):
    models.script.turns = list(TURNS)
    run_stubs("Weather?", {"get_weather": {"rain": True}}, model_of(models, guidelines="Use metres."))
    first, second = (seen.body for seen in models.script.seen)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["get_weather", "get_time"]
    assert first["tools"][1]["function"]["parameters"] == {"type": "object", "additionalProperties": True}
    roles = [message["role"] for message in second["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    calls = [call["id"] for call in second["messages"][2]["tool_calls"]]
    assert [message["tool_call_id"] for message in second["messages"][3:]] == calls
    assert second["messages"][3]["content"] == '{"rain":true}'


def test_a_turn_that_fails_for_good_ends_the_conversation(models):
    models.script.turns = [TURNS[0], Failure(401)]
    with pytest.raises(ProviderError, match="HTTP 401"):
        run_stubs("Weather?", {}, model_of(models))


def test_it_notes_the_attempts_of_every_turn(models):
    models.script.turns = [Failure(503), TURNS[0], Failure(429), TURNS[1]]
    model = model_of(models)
    run_stubs("Weather?", {}, model)
    assert [note for note in model.notes if "HTTP 503" in note]
    assert [note for note in model.notes if "HTTP 429" in note]
