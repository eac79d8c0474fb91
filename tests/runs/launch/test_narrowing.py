"""Links that narrow a new run to some of its suite's scenarios."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from runs.launch.new_run_page.narrowing import MOST_TAGS, chips, failed_keys
from runs.launch.selection import ChosenScenario


def scenario(number, *tags, tier=0, key=""):
    return ChosenScenario(number, number, key or f"s{number}", tags, tier, "", None)


def shown(scenarios, failed=(), given=""):
    return {chip.label: chip for chip in chips(scenarios, failed, QueryDict(given))}


def after(chip):
    """Return what the form has when a chip was followed."""
    return dict(QueryDict(chip.query).lists())


def test_each_tag_counts_its_scenarios():
    found = shown([scenario(1, "smoke", "git"), scenario(2, "smoke"), scenario(3)])
    assert {label: chip.n for label, chip in found.items()} == {"smoke": 2, "git": 1}


def test_the_most_frequent_tags_are_offered():
    tags = [f"t{number}" for number in range(MOST_TAGS + 3)]
    found = shown([scenario(number, *tags[number:]) for number in range(len(tags))])
    assert list(found) == tags[: -MOST_TAGS - 1 : -1]


def test_a_tag_with_a_comma_is_not_offered():
    assert list(shown([scenario(1, "a,b", " c", "d")])) == ["d"]


def test_tiers_are_offered_but_for_the_last_one():
    found = shown([scenario(1), scenario(2, tier=1), scenario(3, tier=1), scenario(4, tier=3)])
    assert {label: chip.n for label, chip in found.items()} == {"up to tier 0": 1, "up to tier 1": 3}


def test_scenarios_of_one_tier_have_no_tiers_to_offer():
    assert shown([scenario(1, tier=2), scenario(2, tier=2)]) == {}


def test_what_failed_is_offered_with_its_number():
    found = shown([scenario(1), scenario(2), scenario(3)], {1, 3, 99})
    assert found["failed last time"].n == 2
    assert after(found["failed last time"]) == {"failed": ["last"], "judge": ["false"]}


@pytest.mark.parametrize("key", ["a,b", " a", "a\n"])
def test_failed_keys_with_commas_are_not_offered(key):
    assert shown([scenario(1, key=key), scenario(2)], {1, 2}) == {}


def test_a_link_keeps_what_else_is_chosen():
    kept = "suite=s&guidance=3&models=a,b&trials=5&concurrency=2&run_tags=x&targets=t+1&targets=%C2%B72"
    chip = shown([scenario(1, "smoke")], given=f"{kept}&judge=on&csrfmiddlewaretoken=secret")["smoke"]
    assert after(chip) == {**dict(QueryDict(kept).lists()), "tags": ["smoke"]}


@pytest.mark.parametrize("given", ["", "judge=false"], ids=["a form", "an address"])
def test_a_link_keeps_the_skipped_judge(given):
    found = shown([scenario(1, "smoke")], given=given)
    assert after(found["smoke"]) == {"tags": ["smoke"], "judge": ["false"]}


def test_tags_and_tiers_hold_together():
    found = shown([scenario(1, "a"), scenario(2, tier=1)], given="tags=a&tier=0&only=s1&judge=on")
    assert found["a"].is_on
    assert found["up to tier 0"].is_on
    assert after(found["a"]) == {"tier": ["0"]}
    assert after(found["up to tier 0"]) == {"tags": ["a"]}


def test_a_chip_in_force_leads_back():
    scenarios = [scenario(1), scenario(2)]
    chip = shown(scenarios, {2}, given=f"only={failed_keys(scenarios, {2})}&judge=on")["failed last time"]
    assert chip.is_on
    assert after(chip) == {}
