"""Perturbation files, which say by their groups what is asserted."""

from evaluators.grading.assertions import Expect
from tests.scenarios.formats.tool_forge_files import case, parse


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
