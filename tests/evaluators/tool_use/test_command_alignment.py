"""Two trials' commands: their keys, their alignment and their first difference."""

from __future__ import annotations

import random
from time import thread_time

import pytest

from evaluators.tool_use.command_alignment import (
    MOST_ALIGNED,
    Divergence,
    align,
    closest_pair,
    command_key,
    first_divergence,
    most_common,
)


@pytest.mark.parametrize(
    ("line", "subcommand", "key"),
    [
        ("todo list --json --tag infra", "list", "list --json --tag"),
        ("todo list --tag=infra --json", "list", "list --json --tag"),
        ("todo list -1 -n 3 -", "list", "list -n"),
        ("todo help list", "help", "help"),
        ("todo --help", "help", "help --help"),
        ("jq -r length out.json", "", "jq length -r"),
        ("todo", "", "todo"),
        ('search {"query":"a","limit":3}', "search", "search limit query"),
        ("search {broken", "search", "search"),
        ("", "", ""),
        ("todo list --" + "x" * 300, "list", "list --" + "x" * 192 + "…"),
    ],
)
def test_a_key_is_the_subcommand_with_its_sorted_flags(line, subcommand, key):
    assert command_key(line, subcommand) == key


def shown(before, after):
    return [
        (before[one] if one is not None else "", after[other] if other is not None else "")
        for one, other in align(before, after)
    ]


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ([], [], []),
        (["a"], ["a"], [("a", "a")]),
        (["a", "b"], ["b"], [("a", ""), ("b", "b")]),
        (["a"], ["b", "c"], [("a", "b"), ("", "c")]),
        (
            ["list --json", "export --json", "jq"],
            ["list --format", "list --format", "list --help", "export --format", "jq"],
            [
                ("list --json", "list --format"), ("", "list --format"), ("", "list --help"),
                ("export --json", "export --format"), ("jq", "jq"),
            ],
        ),
    ],
)  # fmt: skip
def test_commands_align_by_key_then_by_subcommand(before, after, pairs):
    assert shown(before, after) == pairs


def test_every_command_is_aligned_once_and_in_order():
    rng = random.Random(7)
    for _ in range(200):
        before, after = ([rng.choice("abc") for _ in range(rng.randrange(9))] for _ in range(2))
        pairs = align(before, after)
        assert [one for one, _ in pairs if one is not None] == list(range(len(before)))
        assert [other for _, other in pairs if other is not None] == list(range(len(after)))


def test_long_trials_align_within_half_a_second():
    rng = random.Random(7)
    before, after = ([rng.choice("abcdef") for _ in range(5_000)] for _ in range(2))
    began = thread_time()
    assert len(align(before, after)) <= 2 * MOST_ALIGNED
    assert thread_time() - began < 0.5


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (["a"], ["a"], None),
        (["a", "list --x"], ["a", "list --y"], Divergence(2, "list --x", "list --y")),
        (["a", "b"], ["a"], Divergence(2, "b", "")),
        ([], ["a"], Divergence(1, "", "a")),
    ],
)
def test_the_first_difference_is_the_first_unequal_pair(before, after, found):
    assert first_divergence(before, after) == found


def test_what_the_second_trial_lacks_is_named():
    assert Divergence(2, "login", "").label == "no login"


def test_the_trials_that_part_ways_last_are_closest():
    assert closest_pair([["a"], ["a", "b", "c"]], [["x"], ["a", "b", "d"]]) == (1, 1)
    assert closest_pair([["a"]], [["b"], ["c"]]) == (0, 0)
    assert closest_pair([], [["a"]]) is None


def test_the_most_common_first_difference_is_counted():
    apart = [Divergence(2, "", "deploy --env")] * 2 + [Divergence(1, "login", "")]
    assert most_common(apart) == ("deploy --env", 2)
    assert most_common([]) == ("", 0)
