import pytest

from evaluators.grading.assertions import ToolCall
from tests.evaluators.grading.assertions.expecting import failures, judged, seen


@pytest.mark.spec("tool-forge", "toolsCalled")
def test_tools_called_is_an_ordered_list():
    assert judged(seen("", "a", "b"), tools_called=("a", "b")).passed
    assert failures(seen("", "b", "a"), tools_called=("a", "b")) == (
        "toolsCalled: expected [a, b] but called [b, a]",
    )


@pytest.mark.spec("tool-forge", "toolsCalled")
def test_tools_called_counts_duplicates():
    assert not judged(seen("", "a", "a"), tools_called=("a",)).passed
    assert judged(seen("", "a", "a"), tools_called=("a", "a")).passed


def test_an_empty_tools_called_allows_no_call():
    assert judged(seen(), tools_called=()).passed
    assert failures(seen("", "a"), tools_called=()) == ("toolsCalled: expected [] but called [a]",)


@pytest.mark.parametrize(
    ("sets", "called", "passed"),
    [
        pytest.param((("a",), ("a", "b")), ("b", "a"), True, id="any order"),
        pytest.param((("a",),), ("a", "a"), True, id="repeated calls are one"),
        pytest.param((("a", "b"),), ("a",), False, id="a part of a set is not enough"),
        pytest.param((("a",),), ("a", "b"), False, id="more than a set is too much"),
        pytest.param((("__none__",),), (), True, id="none is the empty set"),
        pytest.param((("__none__",),), ("a",), False, id="none forbids every call"),
        pytest.param((("__none__",), ("a",)), ("a",), True, id="none beside another set"),
        pytest.param(((),), (), True, id="an empty set"),
        pytest.param((("__none__", "a"),), (), False, id="none within a set never matches"),
    ],
)
@pytest.mark.spec("tool-forge", "toolsAcceptable and __none__")
def test_tools_acceptable_compares_sets(sets, called, passed):
    assert judged(seen("", *called), tools_acceptable=sets).passed is passed


def test_no_acceptable_set_is_skipped():
    found = judged(seen("", "a"), tools_acceptable=())
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 0, 1)


@pytest.mark.spec("tool-forge", "toolsNotCalled")
def test_tools_not_called_forbids_each_tool():
    assert judged(seen("", "a"), tools_not_called=("b",)).passed
    assert failures(seen("", "a", "b"), tools_not_called=("b", "a")) == (
        "toolsNotCalled: b was called",
        "toolsNotCalled: a was called",
    )


def test_tools_called_and_tools_acceptable_both_run():
    found = judged(seen("", "a"), tools_called=("a",), tools_acceptable=(("b",),))
    assert (found.failed_assertion, found.assertions_run) == ("toolsAcceptable", 2)


@pytest.mark.spec("tool-forge", "noToolErrors with stubs, routing only, and real tools")
def test_in_real_execution_a_failed_call_fails():
    facts = seen("", ToolCall("a", success=True), ToolCall("b", success=False))
    assert failures(facts, no_tool_errors=True) == ("noToolErrors: b failed",)


def test_a_call_with_unknown_success_is_skipped():
    found = judged(seen("", "a", ToolCall("b", success=True)), no_tool_errors=True)
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 1, 1)
    assert found.warnings == ("noToolErrors: the call of a was skipped: its success is unknown.",)


def test_without_calls_there_is_no_tool_error():
    assert judged(seen(), no_tool_errors=True).assertions_run == 1


@pytest.mark.spec("tool-forge", "noToolErrors with stubs, routing only, and real tools")
def test_in_stub_mode_a_call_without_a_stub_fails():
    facts = seen("", ToolCall("a", success=False), "x", "x")
    assert judged(facts, no_tool_errors=True, stubs=("a", "x")).passed
    assert failures(facts, no_tool_errors=True, stubs=("a",)) == ("noToolErrors: no stub for x",)


def test_an_empty_stubs_is_stub_mode():
    assert not judged(seen("", ToolCall("a", success=True)), no_tool_errors=True, stubs=()).passed


@pytest.mark.spec("tool-forge", "noToolErrors with stubs, routing only, and real tools")
def test_in_routing_only_mode_it_is_a_no_op():
    facts = seen("", ToolCall("a", success=False), executes_tools=False)
    found = judged(facts, no_tool_errors=True)
    assert (found.passed, found.assertions_run, found.assertions_skipped) == (True, 0, 0)


def test_false_switches_it_off():
    assert judged(seen("", ToolCall("a", success=False)), no_tool_errors=False).assertions_run == 0
