from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.operators import OPERATORS, differences

pytestmark = pytest.mark.one_database

UNDEFINED = {"$undefined": True}
NUMBER = {"$number": True}


@pytest.mark.parametrize(
    ("expected", "result"),
    [
        ({"a": 1}, {"a": 1.0000000001, "b": 2}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}),
        ({"a": None}, {"a": None}),
        ({"a": None}, {}),
        ({"a": UNDEFINED}, {}),
        ({"a": UNDEFINED}, {"a": None}),
        ({"a": NUMBER}, {"a": 3.5}),
        ({"a_len": 2}, {"a": "xy"}),
        ({"a_len": 2}, {"a": [1, 2]}),
        ({"a_contains": "x"}, {"a": "axb"}),
        ({"a_contains": ["x", "b"]}, {"a": "axb"}),
        ({"a_contains": [1]}, {"a": [1, 2]}),
        ({"a_contains": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}),
        ({"a_contains": {"b": "x"}}, {"a": {"b": "axb", "c": 1}}),
        ({"a_contains": {"b": 1}}, {"a": {"b": 1}}),
        ({"a_lacks": ["x"]}, {"a": "abc"}),
        ({"a_lacks": [3]}, {"a": [1, 2]}),
        ({"a_any_substring": "x"}, {"a": ["a", "bx"]}),
        ({"a_any_substring": ["x", "a"]}, {"a": ["a", "bx"]}),
        ({"a_nonempty": True}, {"a": [1]}),
        ({"a_gt": 1, "a_gte": 2, "a_lt": 3, "a_lte": 2}, {"a": 2}),
        ({"a_approx": 0.5}, {"a": 0.5000000001}),
        ({"a_approx": [0.5, 0.1]}, {"a": 0.59}),
        ({"error_regex": "NO such"}, {"error": "There is no such thing."}),
        ({"error": True}, {"error": "any"}),
        ({"retry_subset": 1}, {"retry_subset": 1}),
        ({"equals": "x"}, "x"),
        ({"contains": ["a"], "lacks": ["b"]}, "xax"),
    ],
    ids=str,
)
def test_it_accepts(expected: dict[str, Any], result: Any) -> None:
    assert differences(expected, result) == []


@pytest.mark.parametrize(
    ("expected", "result"),
    [
        ({"a": 1}, {"a": 1.00001}),
        ({"a": 1}, {"a": True}),
        ({"a": False}, {"a": 0}),
        ({"a": "1"}, {"a": 1}),
        ({"a": 1}, {}),
        ({"a": {"b": 1}}, {"a": {"c": 1}}),
        ({"a": {"b": 1}}, {"a": 1}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": []}, {"a": ""}),
        ({"a": UNDEFINED}, {"a": 0}),
        ({"a": NUMBER}, {"a": True}),
        ({"a": NUMBER}, {}),
        ({"a_len": 2}, {"a": [1]}),
        ({"a_contains": ["x", "z"]}, {"a": "axb"}),
        ({"a_contains": "x"}, {"a": None}),
        ({"a_contains": {"b": "z"}}, {"a": {"b": "axb"}}),
        ({"a_contains": {"b": 1}}, {"a": {}}),
        ({"a_lacks": ["x", "b"]}, {"a": "abc"}),
        ({"a_any_substring": "x"}, {"a": ["a"]}),
        ({"a_nonempty": True}, {"a": []}),
        ({"a_gt": 2}, {"a": 2}),
        ({"a_gte": 3}, {"a": 2}),
        ({"a_lt": 2}, {"a": 2}),
        ({"a_lte": 1}, {"a": 2}),
        ({"a_approx": [0.5, 0.1]}, {"a": 0.61}),
        ({"a_approx": 0.5}, {"a": None}),
        ({"error_regex": "x"}, {"error": None}),
        ({"error_regex": "x"}, {"error": "y"}),
        ({"error": True}, {"error": ""}),
        ({"missing_len": 0}, {}),
        ({"equals": "x"}, "xy"),
        ({"lacks": ["a"]}, "xax"),
    ],
    ids=str,
)
def test_it_names_the_difference(expected: dict[str, Any], result: Any) -> None:
    (problem,) = differences(expected, result)
    assert problem.removeprefix("text_").startswith(next(iter(expected)).replace("equals", "text"))


def test_a_width_is_compared_with_that_of_another_input() -> None:
    def run(given: Any) -> Any:
        return {"lower": 0.0, "upper": given["n"]}

    assert differences({"width_lt_of": {"n": 3}}, run({"n": 2}), run) == []
    assert len(differences({"width_lt_of": {"n": 2}}, run({"n": 2}), run)) == 1


@pytest.mark.parametrize("suffix", sorted(OPERATORS))
def test_a_field_of_that_very_name_comes_first(suffix: str) -> None:
    assert differences({f"a{suffix}": "v"}, {f"a{suffix}": "v", "a": 1}) == []
