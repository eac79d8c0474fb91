import pytest

from evaluators.statistics.comparability import (
    Standard,
    describe_incomparable,
    find_changed_parts,
    name_incomparable,
    not_comparable,
)

ONE = Standard("t", "g", "j", "r")


@pytest.mark.parametrize(
    ("after", "reasons"),
    [
        (ONE, ()),
        (Standard("t2", "g", "j", "r"), ("task",)),
        (Standard("t", "g2", "j", "r"), ("gates",)),
        (Standard("t", "g", "j2", "r"), ("judge",)),
        (Standard("t", "g", "j", ""), ("rubric",)),
        (Standard("t2", "g", "j", "r2"), ("task", "rubric")),
    ],
)
def test_what_changed_is_the_reason(after, reasons):
    assert find_changed_parts(ONE, after) == reasons


def test_only_scenarios_that_both_have_are_named():
    other = ONE._replace(gates="g2")
    found = not_comparable({"a": ONE, "b": ONE, "old": ONE}, {"new": other, "b": other, "a": ONE})
    assert found == {"b": ("gates",)}


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([], ""),
        ([("gates",)], "1 scenario not comparable: gates changed"),
        ([("gates",)] * 3, "3 scenarios not comparable: gates changed"),
        (
            [("task",), ("gates",), ("gates",), ("task", "rubric")],
            "4 scenarios not comparable: gates changed (2), task changed (1), task and rubric changed (1)",
        ),
    ],
)
def test_one_line_says_how_many_and_why(reasons, expected):
    assert describe_incomparable(reasons) == expected


def test_the_scenarios_can_be_named_with_it():
    assert name_incomparable({}) == ""
    found = name_incomparable({"a": ("gates",), "b": ("gates",)})
    assert found == "2 scenarios not comparable, changed: a (gates), b (gates)"
