"""Values that are nested too deep to be read again in a page."""

from __future__ import annotations

import json

import pytest

from evalhub.lib.limits import DEEPEST_JSON
from evaluators.json_values import CUT, indent_json
from evaluators.model import Event, Transcript
from evaluators.redaction import redact_json
from evaluators.transcripts import parse
from evaluators.transcripts.nesting import without_deep_values


def nested(levels: int) -> str:
    return "[" * levels + "0" + "]" * levels


@pytest.mark.hostile
@pytest.mark.parametrize("parser", ["trace", "events"])
def test_deep_values_of_a_stream_are_cut(parser):
    line = f'{{"type": "tool_call", "id": "1", "name": "x", "input": {{"a": {nested(900)}}}}}\n'
    result = f'{{"type": "tool_result", "id": "1", "output": {nested(900)}}}\n'
    found = parse(parser, (line + result).encode())
    assert any("nested more than 60 levels" in each for each in found.problems)
    for event in found.events:
        assert json.dumps([event.input, event.output]).count("[") < 3 * DEEPEST_JSON
        redact_json([event.input, event.output, event.metadata])


def test_other_values_stay_as_they_are():
    value = json.loads(nested(DEEPEST_JSON))
    kept = Transcript(events=(Event("tool_call", input=value, metadata={"a": [1]}),))
    assert without_deep_values(kept) is kept
    deeper = without_deep_values(Transcript(events=(Event("tool_call", input=[value, {"a": 1}]),)))
    assert json.dumps(deeper.events[0].input).count(CUT) == 1
    assert deeper.events[0].input[1] == {"a": 1}
    assert without_deep_values(deeper) == deeper


def test_json_that_indentation_makes_long_stays_on_one_line():
    assert indent_json({"a": [1]}, most=100) == '{\n  "a": [\n    1\n  ]\n}'
    assert indent_json({"a": [1, "ä"]}, most=10) == '{"a": [1, "ä"]}'
