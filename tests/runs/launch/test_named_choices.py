"""What a new run offers by name."""

from __future__ import annotations

import pytest

from runs.launch.new_run_page.run_choices import scenario_choices, tag_choices, tier_choices, unique_names
from runs.launch.selection import ChosenScenario


def scenario(number, *tags, tier=0, key=""):
    return ChosenScenario(number, number, key or f"s{number}", tags, tier, "", None)


def test_each_tag_counts_its_scenarios_and_the_most_frequent_is_first():
    found = tag_choices([scenario(1, "git", "smoke"), scenario(2, "smoke"), scenario(3)])
    assert [(each.name, each.note) for each in found] == [("smoke", "2"), ("git", "1")]


def test_a_tag_with_a_comma_is_not_offered():
    assert [each.name for each in tag_choices([scenario(1, "a,b", " c", "d")])] == ["d"]


def test_tiers_are_offered_but_for_the_last_one():
    found = tier_choices([scenario(1), scenario(2, tier=1), scenario(3, tier=1), scenario(4, tier=3)], "")
    assert found == [("", "all"), ("0", "0: 1 scenario"), ("1", "1: 3 scenarios")]


def test_scenarios_of_one_tier_have_no_tiers_to_offer_unless_one_is_chosen():
    same = [scenario(1, tier=2), scenario(2, tier=2)]
    assert tier_choices(same, "") == []
    assert tier_choices(same, "7") == [("", "all"), ("7", "7")]


def test_a_scenario_says_that_it_failed_and_its_tags():
    found = scenario_choices([scenario(1, "git"), scenario(2)], {1, 99})
    assert [(each.name, each.note) for each in found] == [("s1", "failed last time, git"), ("s2", "")]


@pytest.mark.parametrize(
    ("values", "known", "names"),
    [
        (["a, b", "a"], (), ["a", "b"]),
        (["a, b"], ("a, b",), ["a, b"]),
        ([" a ", "", " , "], ("b",), ["a"]),
        ([" a "], (" a ",), [" a "]),
    ],
    ids=["typed", "known", "blank", "known with blanks"],
)
def test_known_names_stay_whole_and_typed_ones_are_split(values, known, names):
    assert unique_names(values, known) == names
