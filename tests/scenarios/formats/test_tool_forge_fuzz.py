"""Whatever JSON an eval file holds, it is read or refused with its lines, and what is read can be judged."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.grading.assertions import ASSERTIONS, VERDICT
from evaluators.grading.evaluate import evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import Event, Transcript
from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError
from scenarios.formats.tool_forge import case_models
from scenarios.spec import ScenarioSpec
from tests.scenarios.formats.tool_forge_files import spec

CALM = settings(max_examples=60)
TEXTS = st.sampled_from(["a", "", "__none__", "{{seed:a}}", "{{snapshot:b[0]}}", "(", "equals", "7"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats(0, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
PARAMS = st.fixed_dictionaries(
    {
        "tool": TEXTS,
        "paramName": TEXTS,
        "assertion": st.sampled_from(["equals", "oneOf", "exists", "matches"]),
    },
    optional={"value": VALUES},
)
EXPECTS = st.dictionaries(st.sampled_from([*ASSERTIONS]), VALUES | st.lists(PARAMS, max_size=2), max_size=4)
CASES = st.dictionaries(st.sampled_from([*case_models.CaseFile.model_fields]), VALUES, max_size=5)
GOOD = st.fixed_dictionaries(
    {"id": st.sampled_from("abc"), "input": st.just({"message": "m"})},
    optional={"expect": EXPECTS, "stubs": st.dictionaries(TEXTS, VALUES, max_size=2), "checks": VALUES},
)
FILES = st.lists(GOOD | CASES | VALUES, max_size=3)
SEEN = TrialEvidence(
    Transcript(events=(Event("tool_call", name="a", input={"a": [None, 7.0]}),)), answer="a 7", seed={"a": 7}
)


def read(value, *, strict=False):
    try:
        return parse_files({"a.golden.json": json.dumps(value, indent=1).encode()}, name="a", strict=strict)
    except ScenarioFileError as error:
        assert all(problem.line > 0 and problem.what.endswith(".") for problem in error.problems)
        assert any(not problem.lint for problem in error.problems)
        return ()


@CALM
@given(FILES | st.fixed_dictionaries({"cases": FILES}, optional={"metadata": VALUES}) | VALUES, st.booleans())
def test_any_file_is_read_or_refused(value, strict):
    read(value, strict=strict)


@CALM
@given(st.lists(GOOD, min_size=1, max_size=1))
def test_every_parsed_scenario_can_be_judged(cases):
    for suite in read(cases):
        for scenario in suite.scenarios:
            done = evaluate(scenario.criteria, SEEN)
            (verdict,) = (score for score in done.scores if score.name == VERDICT)
            assert verdict.passed is (done.outcome == "pass")
            assert verdict.detail["vacuous"] is (verdict.passed and not verdict.detail["assertions_run"])


@CALM
@given(st.lists(GOOD, min_size=1, max_size=1))
def test_every_parsed_transcript_is_valid_json(cases):
    for suite in read(cases):
        for scenario in suite.scenarios:
            assert ScenarioSpec.model_validate_json(scenario.model_dump_json()) == scenario


def test_a_list_of_values_is_kept_as_one():
    param = {"tool": "t", "paramName": "p", "assertion": "oneOf", "value": ["a"]}
    found = spec(expect={"toolParams": [param]}, stubs={})
    assert ScenarioSpec.model_validate_json(found.model_dump_json()) == found
