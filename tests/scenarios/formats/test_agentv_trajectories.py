"""Checks of calls and steps in eval files of AgentV, in all the shapes that it reads."""

from __future__ import annotations

import pytest

from evaluators.grading.assertions.tool_checks import StepCount
from evaluators.grading.evaluate import Criteria
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.scores import BaseEvaluator
from evaluators.transcripts.traces import read_trace
from scenarios.formats import parse_files
from scenarios.formats.parsed import Problem, ScenarioFileError

FILE = "prompts: [Refund?]\ntests:\n  - id: a\n    assert:\n      - "


def read(entry: str) -> tuple[BaseEvaluator, tuple[Problem, ...]]:
    (found,) = parse_files({"a.eval.yaml": f"{FILE}{entry}\n".encode()}, name="folder")
    return found.scenarios[0].criteria.evaluators[0], found.lints


@pytest.mark.parametrize(
    ("value", "step", "pattern"),
    [
        ("{max: 3}", "any", ""),
        ("{type: tool, max: 3}", "tool", ""),
        ("{type: command, name: 'git *', max: 3}", "command", "git *"),
        ("{name: a, pattern: 'b*', max: 3}", "any", "b*"),
    ],
)
def test_steps_are_counted_by_type_and_name(value, step, pattern):
    found, lints = read(f"{{type: 'trajectory:step-count', value: {value}}}")
    assert isinstance(found, StepCount)
    assert (found.step, found.pattern) == (step, pattern)
    assert lints == ()


@pytest.mark.parametrize("steps", ["[find, {pattern: 'b*'}, {name: C}]", "{steps: [{name: find}, 'b*', c]}"])
@pytest.mark.parametrize(("called", "value"), [("find book c", 1), ("Find B C", 1), ("find c book", 0)])
@pytest.mark.parametrize("mode", ["in_order", "exact"])
def test_steps_of_a_sequence_are_names_or_patterns(steps, called, value, mode):
    value_of_file = steps if steps.startswith("[") else f"{steps[:-1]}, mode: {mode}}}"
    found, lints = read(f"{{type: 'trajectory:tool-sequence', value: {value_of_file}}}")
    trace = read_trace([{"type": "tool_call", "name": name} for name in called.split()])
    assert found.evaluate(Criteria(), TrialEvidence(trace))[0].value == value
    assert lints == ()


@pytest.mark.parametrize("step", ["{type: tool}", "{}", "{name: ''}", "3"])
def test_a_step_without_a_name_is_refused(step):
    with pytest.raises(ScenarioFileError) as caught:
        read(f"{{type: 'trajectory:tool-sequence', value: [a, {step}]}}")
    assert caught.value.problems[0].line == 5


def test_arguments_and_what_is_ignored_have_two_spellings():
    found, lints = read(
        "{type: 'trajectory:tool-args-match', value: {pattern: 's*', arguments: {q: x}, ignore: id, mode: exact}}"
    )
    trace = read_trace([{"type": "tool_call", "name": "search", "input": {"q": "x", "id": 7}}])
    assert found.evaluate(Criteria(), TrialEvidence(trace))[0].value == 1
    assert lints == ()


def test_arguments_without_a_tool_are_refused():
    with pytest.raises(ScenarioFileError) as caught:
        read("{type: 'trajectory:tool-args-match', value: {args: {}}}")
    assert caught.value.problems[0].id == "format/missing-field"
