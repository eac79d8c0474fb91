import pytest

from evaluators.grading.assertions import ToolCall
from tests.evaluators.grading.assertions.expecting import failures, judged, param, seen

pytestmark = pytest.mark.spec("tool-forge", "toolParams")

SEED = {"city": "Paris", "cities": ["Paris", "Rome"], "empty": "", "n": 7}


def call(**params):
    return seen("", ToolCall("t", params), seed=SEED)


@pytest.mark.parametrize(
    ("assertion", "value", "actual", "passed"),
    [
        pytest.param("equals", "Paris", "Paris", True, id="equals"),
        pytest.param("equals", "Paris", "paris", False, id="equals minds case"),
        pytest.param("equals", "7", 7.0, True, id="a whole float is written without a point"),
        pytest.param("equals", "true", True, True, id="booleans are words"),
        pytest.param("equals", "null", None, True, id="null is a word"),
        pytest.param("equals", '{"a":[1]}', {"a": [1]}, True, id="objects are compact JSON"),
        pytest.param("equals", "{{seed:city}}", "Paris", True, id="equals with a token"),
        pytest.param("contains", "Tokyo", "Tokyo, JP", True, id="contains"),
        pytest.param("contains", "x", "Tokyo", False, id="does not contain"),
        pytest.param("oneOf", ("metric", "imperial"), "metric", True, id="one of"),
        pytest.param("oneOf", ("metric", "imperial"), "met", False, id="a part of one is none of them"),
        pytest.param("oneOf", "metric", "met", False, id="a lone value is a list of one"),
        pytest.param("oneOf", ("{{seed:nope}}", "Rome"), "Rome", True, id="one of without the unresolved"),
        pytest.param("oneOf", "{{seed:cities}}", "Rome", True, id="a lone token gives its list"),
        pytest.param("matches", "^P.r", "Paris", True, id="matches searches"),
        pytest.param("matches", "s$", "Paris\n", False, id="the end is the end"),
        pytest.param("matches", "(?=P)Par", "Paris", True, id="matches with look-ahead"),
    ],
)
def test_it_compares_a_parameter(assertion, value, actual, passed):
    assert judged(call(p=actual), tool_params=param(assertion, value)).passed is passed


def test_exists_accepts_null():
    assert judged(call(p=None), tool_params=param("exists")).passed
    assert failures(call(p=None), tool_params=param("notExists")) == ("toolParams: t.p exists",)


def test_a_parameter_that_is_not_there_does_not_exist():
    assert judged(call(), tool_params=param("notExists")).passed
    assert failures(call(), tool_params=param("exists")) == ("toolParams: t.p does not exist",)


@pytest.mark.parametrize("assertion", ["equals", "contains", "oneOf", "matches"])
def test_a_missing_parameter_fails_every_comparison(assertion):
    assert failures(call(), tool_params=param(assertion, "undefined")) == (
        "toolParams: parameter missing: t.p",
    )


def test_only_the_first_call_of_the_tool_counts():
    facts = seen("", "other", ToolCall("t", {"p": "a"}), ToolCall("t", {"p": "b"}))
    assert judged(facts, tool_params=param("equals", "a")).passed
    assert not judged(facts, tool_params=param("equals", "b")).passed


def test_a_tool_that_was_not_called_is_skipped():
    found = judged(seen(), tool_params=param("equals", "a"))
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 0, 1)
    assert found.warnings == ("toolParams: t.p was skipped: t was not called.",)


@pytest.mark.spec("tool-forge", "Unresolved: in toolParams, the parameter is skipped")
def test_an_unresolved_value_is_skipped():
    found = judged(call(p="x"), tool_params=param("equals", "{{seed:nope}}"))
    assert (found.passed, found.assertions_skipped) == (True, 1)
    assert found.skipped_tokens == ("{{seed:nope}}",)


@pytest.mark.parametrize("value", ["", "{{seed:empty}}"], ids=["is", "resolves to"])
def test_an_empty_value_is_skipped(value):
    found = judged(call(p="x"), tool_params=param("contains", value))
    assert (found.assertions_run, found.assertions_skipped) == (0, 1)


def test_one_of_nothing_that_resolves_is_skipped():
    found = judged(call(p="x"), tool_params=param("oneOf", ("{{seed:a}}", "{{seed:b}}")))
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 0, 2)


def test_a_pattern_that_a_token_breaks_fails():
    facts = seen("", ToolCall("t", {"p": "x"}), seed={"open": "("})
    (failure,) = failures(facts, tool_params=param("matches", "{{seed:open}}"))
    assert failure.startswith("toolParams: t.p: invalid regex: '(' is not a regular expression")


def test_the_error_shows_expected_and_actual():
    assert failures(call(p=7), tool_params=param("oneOf", ("a", "b"))) == (
        "toolParams: t.p: expected oneOf 'a' or 'b' but got '7'",
    )


@pytest.mark.hostile
def test_a_value_that_is_nested_too_deep_fails():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert failures(call(p=deep), tool_params=param("contains", "x")) == (
        "toolParams: t.p: the value is nested too deep to compare",
    )
