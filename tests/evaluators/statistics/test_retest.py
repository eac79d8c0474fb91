"""Which scenarios of a run are run again, how often, and what their fresh trials say."""

from __future__ import annotations

from math import comb

import pytest

from evaluators.statistics.retest import (
    FEWEST,
    LOOSE,
    MOST,
    STRICT,
    Passes,
    RetestOutcome,
    choose_fallen,
    decide_retest,
    has_fallen,
    is_fixed,
    lower_p,
    plan_batch,
    plan_in_turn,
    share_named,
)


def every(passed: int, trials: int, keys: str) -> dict[str, Passes]:
    """Return the same passes for each of these scenarios."""
    return dict.fromkeys(keys, Passes(passed, trials))


@pytest.mark.parametrize(
    ("new", "old", "p"),
    [
        (Passes(0, 3), Passes(3, 3), 1 / comb(6, 3)),
        (Passes(0, 6), Passes(15, 15), 1 / comb(21, 6)),
        (Passes(1, 3), Passes(2, 3), (comb(3, 0) * comb(3, 3) + comb(3, 1) * comb(3, 2)) / comb(6, 3)),
        (Passes(3, 3), Passes(3, 3), 1.0),
        (Passes(0, 3), Passes(0, 3), 1.0),
    ],
)
def test_the_p_of_a_lower_rate_is_fisher_s(new, old, p):
    assert lower_p(new, old) == pytest.approx(p)


@pytest.mark.parametrize(
    ("new", "old", "fell"),
    [
        # 1 / 20 is the level itself.
        ((0, 3), (3, 3), True),
        ((1, 3), (3, 3), False),
        # 1 / 10 chooses only with a single trial.
        ((0, 1), (9, 9), True),
        ((0, 2), (3, 3), False),
        # By 20 points, however sure.
        ((400, 500), (500, 500), False),
        ((0, 0), (3, 3), False),
        ((0, 3), (0, 0), False),
    ],
)
def test_a_scenario_is_chosen_by_its_level_and_25_points(new, old, fell):
    assert has_fallen(Passes(*new), Passes(*old)) is fell


def test_the_smallest_p_is_first_and_ties_are_shuffled_the_same_for_a_seed():
    old = every(30, 30, "abcdefgh")
    new = every(1, 3, "abcdefg") | {"h": Passes(0, 3)}
    chosen = choose_fallen(new, old, seed=7)
    assert chosen[0] == "h"
    assert sorted(chosen) == list("abcdefgh")
    assert choose_fallen(new, old, seed=7) == chosen
    orders = {tuple(choose_fallen(new, old, seed)) for seed in range(20)}
    assert len(orders) > 1


def test_scenarios_without_earlier_trials_are_not_chosen():
    assert choose_fallen(every(0, 3, "ab"), every(3, 3, "a"), seed=1) == ["a"]


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("old", [Passes(3, 3), Passes(6, 6), Passes(15, 15), Passes(27, 30)])
def test_a_batch_has_the_fewest_trials_of_which_none_passing_names(batch, old):
    planned = plan_batch("abc"[:batch], dict.fromkeys("abc", old), left=0, is_first=True)
    level = (STRICT if old.trials >= 15 else LOOSE) / batch
    for each in planned:
        assert each.level == level
        assert FEWEST <= each.trials <= MOST
        assert lower_p(Passes(0, each.trials), old) < level
        assert each.trials == FEWEST or lower_p(Passes(0, each.trials - 1), old) >= level


def test_where_twelve_trials_do_not_decide_none_are_planned():
    (planned,) = plan_batch("a", {"a": Passes(2, 3)}, left=100, is_first=True)
    assert planned.trials == 0
    assert plan_batch("a", {"a": Passes(1, 30)}, left=100, is_first=True)[0].trials == 0


def test_three_at_a_time_and_only_the_first_batch_exceeds_the_limit():
    old = every(30, 30, "abcd")
    first = plan_batch("abcd", old, left=0, is_first=True)
    assert [each.key for each in first] == ["a", "b", "c"]
    each = first[0].trials
    assert [plan.key for plan in plan_batch("abc", old, left=2 * each, is_first=False)] == ["a", "b"]
    assert plan_batch("abc", old, left=each - 1, is_first=False) == []


@pytest.mark.parametrize(
    ("fresh", "outcome"),
    [
        ((0, 6), RetestOutcome.NAMED),
        ((6, 6), RetestOutcome.PASSES_AGAIN),
        ((5, 6), RetestOutcome.NOT_DECIDED),
        ((0, 1), RetestOutcome.NOT_DECIDED),
        ((0, 3), RetestOutcome.NAMED),
        ((0, 0), RetestOutcome.NOT_DECIDED),
    ],
)
def test_the_fresh_trials_alone_decide(fresh, outcome):
    assert decide_retest(Passes(*fresh), Passes(30, 30), STRICT) is outcome


def test_fresh_trials_need_25_points_and_something_to_compare_with():
    assert decide_retest(Passes(400, 500), Passes(500, 500), STRICT) is RetestOutcome.NOT_DECIDED
    assert decide_retest(Passes(0, 6), Passes(0, 0), STRICT) is RetestOutcome.NOT_DECIDED


def test_arms_in_turn_get_six_trials_at_one_percent_shared_by_the_batch():
    planned = plan_in_turn("abcd")
    assert [(each.key, each.trials) for each in planned] == [("a", 6), ("b", 6), ("c", 6)]
    assert {each.level for each in planned} == {LOOSE / 3}
    assert decide_retest(Passes(0, 6), Passes(6, 6), LOOSE / 3) is RetestOutcome.NAMED


def test_a_scenario_is_fixed_when_fresh_trials_beat_those_since_it_was_named():
    assert is_fixed(Passes(6, 6), Passes(0, 6))
    assert is_fixed(Passes(6, 6), Passes(1, 9))
    assert not is_fixed(Passes(6, 6), Passes(3, 6))
    assert not is_fixed(Passes(5, 6), Passes(2, 6))
    assert not is_fixed(Passes(0, 0), Passes(0, 6))
    assert not is_fixed(Passes(6, 6), Passes(0, 0))


def test_a_plan_says_how_often_a_broken_scenario_is_named() -> None:
    assert share_named(Passes(29, 30), 3) > 0.95 > share_named(Passes(3, 3), 3) > 0.75
    assert share_named(Passes(20, 30), 3) == share_named(Passes(0, 0), 3) == 0.0
