import json

import pytest

from evaluators.grading.assertions import calls_of_transcript
from evaluators.grading.stub_loop import MAX_TURNS, ModelCall, ModelTurn, StubMessage, run_stubs
from evaluators.model import Usage

WEATHER = ModelCall("get_weather", {"city": "Paris"}, "tc_1")
STUBS = {"get_weather": {"temperature": 18}}


class Model:
    """Answers with the given turns, the last of them again and again."""

    def __init__(self, *turns):
        self.turns = turns
        self.asked = []

    def __call__(self, messages):
        self.asked.append(messages)
        return self.turns[min(len(self.asked), len(self.turns)) - 1]


@pytest.mark.spec("tool-forge", "Stubs start a conversation")
def test_it_feeds_the_stubs_answer_back():
    model = Model(ModelTurn("Let me look.", (WEATHER,)), ModelTurn("18 degrees."))
    run_stubs("Weather?", STUBS, model)
    assert model.asked[1] == (
        StubMessage("user", "Weather?"),
        StubMessage("assistant", "Let me look.", (WEATHER,)),
        StubMessage("tool", '{"temperature":18}', call=WEATHER),
    )


def test_it_stops_when_no_tool_is_called():
    done = run_stubs("m", STUBS, Model(ModelTurn("", (WEATHER,)), ModelTurn("18 degrees.")))
    assert (done.turns, done.transcript.answer, done.unfinished) == (2, "18 degrees.", False)
    assert done.tools_called == ("get_weather",)


@pytest.mark.spec("tool-forge", "The final response is judged")
def test_the_answer_is_the_final_response():
    done = run_stubs("m", STUBS, Model(ModelTurn("Let me look.", (WEATHER,)), ModelTurn("")))
    assert done.transcript.answer == ""
    assert done.transcript.text == "Let me look."


def test_a_missing_stub_is_reported_to_the_model():
    model = Model(ModelTurn("", (ModelCall("gone"), ModelCall("gone"))), ModelTurn("Sorry."))
    done = run_stubs("m", STUBS, model)
    assert done.missing_stubs == ("gone", "gone")
    assert json.loads(model.asked[1][-1].text) == {"error": 'no stub for "gone"'}
    assert [call.success for call in calls_of_transcript(done.transcript)] == [False, False]


def test_a_stub_may_be_any_value():
    model = Model(ModelTurn("", (ModelCall("a"),)), ModelTurn("Done."))
    done = run_stubs("m", {"a": None}, model)
    assert done.missing_stubs == ()
    assert model.asked[1][-1].text == "null"


@pytest.mark.parametrize(("given", "turns"), [({}, MAX_TURNS), ({"max_turns": 2}, 2)], ids=["5", "given"])
@pytest.mark.spec("tool-forge", "Most turns, 5 by default")
def test_it_stops_after_max_turns(given, turns):
    done = run_stubs("m", STUBS, Model(ModelTurn("Again.", (WEATHER,))), **given)
    assert (done.turns, done.unfinished, len(done.tools_called)) == (turns, True, turns)
    assert done.transcript.answer == "Again."


def test_calls_are_kept_in_order_over_turns_with_their_answers():
    again = ModelCall("get_weather", {"city": "Rome"}, "tc_1")
    done = run_stubs("m", STUBS, Model(ModelTurn("", (WEATHER,)), ModelTurn("", (again,)), ModelTurn("x")))
    calls = calls_of_transcript(done.transcript)
    assert [call.params["city"] for call in calls] == ["Paris", "Rome"]
    assert [call.success for call in calls] == [True, True]


def test_tokens_are_summed_over_turns():
    turns = (ModelTurn("", (WEATHER,), Usage(10, 5)), ModelTurn("x", (), Usage(5, 30, estimated=True)))
    assert run_stubs("m", STUBS, Model(*turns)).transcript.usage == Usage(15, 35, estimated=True)


def test_without_any_usage_there_is_none():
    assert run_stubs("m", STUBS, Model(ModelTurn("x"))).transcript.usage is None
