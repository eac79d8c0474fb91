"""Files that say by other fields which tool is expected, and what they assert."""

from evaluators.grading.assertions import Expect, ToolParam
from tests.scenarios.formats.tool_forge_files import case, parse, spec

THIRD = {
    "expect": ...,
    "expectedTool": "get_weather",
    "expectedArgs": {"city": "Paris", "days": 2},
    "checks": [
        {"type": "tool_called", "tool": "get_weather"},
        {"type": "arg_equals", "arg": "city", "value": "Paris"},
        {"type": "arg_equals", "arg": "unit", "value": "c"},
    ],
}


def test_the_third_format_becomes_assertions():
    assert spec(**THIRD).criteria.expect == Expect(
        tools_called=("get_weather",),
        tools_included=("get_weather",),
        tool_params=(
            ToolParam(tool="get_weather", param="city", assertion="equals", value="Paris"),
            ToolParam(tool="get_weather", param="days", assertion="equals", value="2"),
            ToolParam(tool="get_weather", param="unit", assertion="equals", value="c"),
        ),
    )


def test_checks_of_the_third_format_alone_let_other_tools_be():
    found = spec(expect=..., checks=[{"type": "tool_called", "tool": "a"}]).criteria.expect
    assert found == Expect(tools_included=("a",))


def test_several_expected_tools_are_called_in_order():
    found = spec(expect=..., expectedTools=["a", "b"], label="correct")
    assert found.criteria.expect.tools_called == ("a", "b")
    assert found.metadata["label"] == "correct"


def test_expect_counts_over_the_third_format():
    found = spec(**{**THIRD, "expect": {"toolsCalled": ["x"]}})
    assert found.criteria.expect == Expect(tools_called=("x",))


def test_a_perturbation_file_asserts_the_routing_of_its_groups():
    suite = parse(
        {
            "triggerPhrase": "weather in",
            "expectedTool": "get_weather",
            "shouldRouteIdentically": {"cases": [case("sp-w-same-001", expect=...)]},
            "shouldRouteDifferently": {"cases": [case("sp-w-diff-001", expect=...), case("sp-w-diff-002")]},
        },
        file="weather.perturbation.json",
    )
    same, other, own = (found.criteria.expect for found in suite.scenarios)
    assert same == Expect(tools_called=("get_weather",))
    assert other == Expect(tools_not_called=("get_weather",))
    assert own == Expect(response_non_empty=True)
    assert (suite.settings["tool"], suite.settings["tier"]) == ("get_weather", "perturbation")
