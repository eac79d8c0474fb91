"""What the comparison of two runs says about a measure."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.statistics import verdict_sentences
from evaluators.statistics.measure_change import ChangeVerdict, ComparisonTest, MeasureRule, Sample, Scale
from evaluators.statistics.regression import (
    compare_headline,
    compare_measures,
    compare_scenarios,
    decide_overall,
)
from tests.evaluators.statistics.simulated_runs import DESIGNS, alarm_share, false_alarms, share_found

pytestmark = pytest.mark.spec("llm-tool-test", "Regressions found by themselves (left open there)")

PASS = MeasureRule("trial/pass", is_outcome=True)
ERRORS = MeasureRule("interaction/error_rate", better_is="lower")
COST = MeasureRule("trial/cost_usd", better_is="lower", scale=Scale.RELATIVE, smallest_effect=0.1)


def outcomes(*passes, trials):
    """Return samples of scenarios by how many of their trials passed."""
    return {f"s{index}": passed(each, trials) for index, each in enumerate(passes)}


def passed(passes, trials):
    rate = passes / trials
    return Sample(trials, rate, passes * (1 - rate) ** 2 + (trials - passes) * rate**2)


def constant(*means, trials=3):
    return {f"s{index}": Sample(trials, each) for index, each in enumerate(means)}


def compared(rule, before, after):
    """Return the change of a measure that is compared alone."""
    compare = compare_headline if rule.is_outcome else compare_measures
    (change,) = compare([(rule, before, after)])
    return change


def varied(*means, trials=3, sd=0.05):
    """Return samples of values that vary within each scenario."""
    return {f"s{index}": Sample(trials, each, sd**2 * (trials - 1)) for index, each in enumerate(means)}


def test_a_clear_drop_over_many_scenarios_is_a_regression():
    change = compared(PASS, outcomes(*[5] * 12, trials=5), outcomes(*[3] * 10, 5, 5, trials=5))
    assert (change.verdict, change.test) == (ChangeVerdict.REGRESSED, ComparisonTest.WITHIN_SCENARIOS)
    assert (change.worse, change.better, change.scenarios, change.trials) == (10, 0, 12, (60, 60))
    assert change.effect == pytest.approx(-1 / 3)
    assert change.lower < change.effect < change.upper < 0
    assert change.p < 1e-5


def test_scenarios_that_broke_are_a_regression_however_many_others_moved():
    before = outcomes(10, 8, *[9] * 6, *[10] * 12, trials=10)
    after = outcomes(0, 0, *[10] * 6, *[9] * 6, *[10] * 6, trials=10)
    change = compared(PASS, before, after)
    assert change.broke == ("s0", "s1")
    assert decide_overall([change]) is ChangeVerdict.REGRESSED


def test_broken_scenarios_outweigh_improved_ones():
    before = outcomes(10, *[0] * 3, *[5] * 8, trials=10)
    after = outcomes(0, *[10] * 3, *[5] * 8, trials=10)
    change = compared(PASS, before, after)
    assert (change.broke, change.mended) == (("s0",), ("s1", "s2", "s3"))
    assert change.verdict is ChangeVerdict.IMPROVED
    assert decide_overall([change]) is ChangeVerdict.REGRESSED
    assert verdict_sentences.explain_verdict(change) == (
        "1 scenario broke: s0; 3 scenarios improved: s1, s2, s3. The suite's pass rate rose."
    )


def test_a_rise_is_an_improvement_and_a_lower_error_rate_too():
    before, after = [0.5] * 12, [0.2 + 0.01 * each for each in range(12)]
    change = compared(ERRORS, varied(*before), varied(*after))
    assert (change.verdict, change.better) == (ChangeVerdict.IMPROVED, 12)
    change = compared(PASS, outcomes(*[1] * 12, trials=5), outcomes(*[4] * 12, trials=5))
    assert change.verdict is ChangeVerdict.IMPROVED


def test_a_single_lost_trial_is_never_a_regression():
    change = compared(PASS, outcomes(*[3] * 20, trials=3), outcomes(2, *[3] * 19, trials=3))
    assert (change.verdict, change.worse) == (ChangeVerdict.TOO_LITTLE, 1)
    assert change.p == 0.5


def test_few_scenarios_are_compared_by_their_trials():
    change = compared(PASS, outcomes(10, 9, 10, trials=10), outcomes(2, 3, 10, trials=10))
    assert (change.verdict, change.test) == (ChangeVerdict.REGRESSED, ComparisonTest.WITHIN_SCENARIOS)
    assert change.is_about_these_scenarios
    assert change.p < 0.001


def test_few_scenarios_of_another_measure_are_compared_by_their_trials():
    change = compared(ERRORS, varied(*[0.1] * 3, trials=5), varied(*[0.4] * 3, trials=5))
    assert (change.verdict, change.test) == (ChangeVerdict.REGRESSED, ComparisonTest.WITHIN_MOMENTS)
    alone = compared(ERRORS, {"s0": Sample(1, 0.1)}, {"s0": Sample(1, 0.9)})
    assert (alone.verdict, alone.test, alone.p) == (ChangeVerdict.TOO_LITTLE, ComparisonTest.NONE, None)
    assert alone.detectable is None


def test_single_trials_are_compared():
    change = compared(PASS, outcomes(*[1] * 20, trials=1), outcomes(*[0] * 9, *[1] * 11, trials=1))
    assert (change.test, change.p) == (ComparisonTest.WITHIN_SCENARIOS, 1 / 2**9)
    assert change.verdict is ChangeVerdict.REGRESSED
    errors = compared(ERRORS, constant(*[0.1] * 20, trials=1), constant(*[0.5, 0.3] * 10, trials=1))
    assert errors.verdict is ChangeVerdict.REGRESSED
    assert errors.lower > 0


def test_thousands_of_single_trials_are_compared():
    before = outcomes(*[1] * 1_100, *[0] * 1_100, trials=1)
    after = outcomes(*[0] * 1_100, *[1] * 1_100, trials=1)
    assert compared(PASS, before, after).verdict is not ChangeVerdict.REGRESSED


def test_one_scenario_is_compared_with_as_many_trials_as_decide():
    few = compared(PASS, outcomes(2, trials=2), outcomes(0, trials=2))
    assert (few.test, few.verdict, few.detectable) == (
        ComparisonTest.BOSCHLOO,
        ChangeVerdict.TOO_LITTLE,
        None,
    )
    assert verdict_sentences.could_show(few) == "So few trials can't reach a verdict, whatever they show."
    against_many = compared(PASS, outcomes(50, trials=50), outcomes(0, trials=3))
    assert against_many.verdict is ChangeVerdict.REGRESSED
    enough = compared(PASS, outcomes(5, trials=5), outcomes(0, trials=5))
    assert (enough.test, enough.verdict) == (ComparisonTest.BOSCHLOO, ChangeVerdict.REGRESSED)
    assert -1 <= enough.lower < enough.upper < 0


def test_runs_without_a_common_scenario_are_not_comparable():
    change = compared(PASS, {"a": passed(3, 3)}, {"b": passed(0, 3)})
    assert (change.verdict, change.scenarios, change.effect) == (ChangeVerdict.NOT_COMPARABLE, 0, None)


def test_the_pass_rate_is_tested_first_and_passes_its_level_on():
    lost, same = outcomes(*[2] * 12, trials=5), outcomes(*[5] * 12, trials=5)
    fewer = (ERRORS, varied(*[0.5] * 12), varied(*[0.56] * 12, sd=0.06))
    first, *others = compare_headline([(PASS, same, same), *[fewer] * 3])
    assert first.p_corrected == pytest.approx(0.5 * 0.05 / 0.03)
    assert others[0].p_corrected == pytest.approx(min(1.0, 3 * others[0].p * 0.05 / 0.005))
    first, *others = compare_headline([(PASS, same, lost), *[fewer] * 3])
    assert first.p_corrected == pytest.approx(first.p * 0.05 / 0.03)
    assert others[0].p_corrected == pytest.approx(3 * others[0].p * 0.05 / 0.035)


def test_a_significant_change_below_the_threshold_is_small():
    change = compared(ERRORS, varied(*[0.5] * 40, trials=50), varied(*[0.48] * 40, trials=50))
    assert change.p_corrected < 0.05
    assert (change.verdict, change.below_threshold) == (ChangeVerdict.EQUIVALENT, True)
    near = compared(ERRORS, varied(*[0.5] * 9, trials=50), varied(*[0.451] * 9, trials=50))
    assert (near.verdict, near.below_threshold) == (ChangeVerdict.SMALL, True)
    assert "The change is real" in verdict_sentences.explain_verdict(near)


def test_equal_results_of_few_trials_are_not_equivalent():
    nothing = compared(PASS, outcomes(*[3] * 20, trials=3), outcomes(*[3] * 20, trials=3))
    assert nothing.verdict is ChangeVerdict.TOO_LITTLE
    assert 0.1 < nothing.detectable < 0.3
    plenty = compared(PASS, outcomes(*[50] * 20, trials=50), outcomes(*[50] * 20, trials=50))
    assert plenty.verdict is ChangeVerdict.EQUIVALENT


def test_fewer_than_ten_scenarios_are_never_equivalent():
    many = outcomes(*[500] * 9, trials=500)
    change = compared(PASS, many, many)
    assert change.verdict is ChangeVerdict.NO_EVIDENCE
    assert verdict_sentences.explain_verdict(change).endswith("would have been found four times out of five.")


def test_costs_are_compared_by_their_ratio():
    before = [0.01 * 2**n for n in range(12)]
    change = compared(COST, constant(*before), constant(*[each * 1.5 for each in before]))
    assert change.effect == pytest.approx(0.5)
    assert change.verdict is ChangeVerdict.REGRESSED
    assert change.lower < 0.5 < change.upper
    change = compared(COST, constant(*before), constant(*[each * 1.05 for each in before]))
    assert change.below_threshold


def test_costs_of_zero_are_compared_with_the_mean_before():
    change = compared(COST, constant(0.0, *[1.0] * 11), constant(0.5, *[1.5] * 11))
    assert change.effect == pytest.approx(0.5 / (11 / 12))


def test_a_measure_without_direction_has_no_winner():
    rule = MeasureRule(
        "interaction/unique_commands", better_is="none", scale=Scale.RELATIVE, smallest_effect=0.1
    )
    change = compared(rule, constant(*[2.0] * 12), constant(*[4.0] * 12))
    assert change.p_corrected < 0.05
    assert change.verdict is ChangeVerdict.CHANGED
    assert verdict_sentences.explain_verdict(change).startswith("p < 0.0001 after correction")


def test_a_large_change_of_one_scenario_alone_is_undecided():
    rule = MeasureRule("interaction/first_try_success_rate")
    before, after = constant(0.1, 0.9), constant(0.9, 0.9)
    other = (PASS, outcomes(0, 3, trials=3), outcomes(3, 3, trials=3))
    change = compare_headline([other, (rule, before, after)])[1]
    assert change.effect == pytest.approx(0.4)
    assert change.verdict is ChangeVerdict.TOO_LITTLE
    assert verdict_sentences.explain_verdict(change).startswith("The scenarios changed too differently")


def test_more_trials_show_a_little_more_than_the_smallest_effect():
    before, after = outcomes(*[3, 2, 3, 3] * 5, trials=3), outcomes(*[3, 3, 2, 3] * 5, trials=3)
    change = compared(PASS, before, after)
    trials = 3 + change.more_trials
    assert verdict_sentences.explain_verdict(change, dollars_a_trial=0.01).endswith(
        f"{change.more_trials} more trials of each scenario in both runs would show 8 points, about"
        f" ${0.4 * change.more_trials:.2f}."
    )
    rng, rates = np.random.default_rng(3), [11 / 12] * 20

    def run(drop):
        return outcomes(*rng.binomial(trials, np.array(rates) - drop).tolist(), trials=trials)

    changes = [compare_headline([(PASS, run(0), run(0.075))], with_power=False)[0] for _ in range(300)]
    found = sum(each.verdict is ChangeVerdict.REGRESSED for each in changes)
    assert 0.72 <= found / 300 <= 0.88


def test_statements_are_tested_exactly_because_they_pass_or_fail():
    rule = MeasureRule("judge/names the file")
    change = compared(rule, outcomes(3, 3, 3, trials=3), outcomes(1, 3, 3, trials=3))
    assert change.test is ComparisonTest.WITHIN_SCENARIOS
    # Their interval is that of passes: equal values of few trials don't mean that nothing varies.
    assert change.lower < -0.3 < 0 < change.upper
    scores = compared(rule, varied(0.9), varied(0.4))
    assert scores.test is ComparisonTest.WITHIN_MOMENTS


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (constant(0.9, trials=2), constant(0.8, trials=2)),
        (constant(0.9, 0.9, trials=1), constant(0.8, 0.8, trials=1)),
        (constant(0.9, trials=3), constant(0.8, trials=1)),
    ],
    ids=["1 × 2", "2 × 1", "3 and 1"],
)
def test_few_scores_that_dont_vary_decide_nothing(before, after):
    change = compared(MeasureRule("judge/judge"), before, after)
    assert change.verdict is ChangeVerdict.TOO_LITTLE


def test_two_trials_of_two_scenarios_miss_most():
    change = compared(PASS, outcomes(2, 2, trials=2), outcomes(2, 1, trials=2))
    assert (change.detectable, change.most_found) == (None, pytest.approx(0.5, abs=0.15))
    assert "miss even the loss of every pass." in verdict_sentences.explain_verdict(change)
    lost = compared(PASS, outcomes(2, 2, trials=2), outcomes(0, 0, trials=2))
    assert lost.verdict is ChangeVerdict.REGRESSED


def test_a_single_scenario_has_one_level():
    change = compared(PASS, outcomes(3, trials=3), outcomes(0, trials=3))
    assert change.p == pytest.approx(1 / 32)
    assert (decide_overall([change]), change.broke) == (ChangeVerdict.TOO_LITTLE, ())
    assert verdict_sentences.could_show(change) == "So few trials can't reach a verdict, whatever they show."


def test_scores_vary_as_their_trials_do():
    before = varied(*[0.8] * 10, trials=3, sd=0.03)
    change = compared(MeasureRule("judge/judge"), before, before)
    assert (change.verdict, change.more_trials) == (ChangeVerdict.EQUIVALENT, 0)
    # The smallest effect, and what the estimate may be off.
    assert 0.05 < change.detectable < 0.06


def test_each_scenario_is_corrected_for_all_of_them():
    before = outcomes(*[10] * 20, trials=10)
    after = outcomes(0, *[10] * 18, 5, trials=10)
    changes = compare_scenarios(PASS, before, after)
    assert changes["s0"].verdict is ChangeVerdict.REGRESSED
    assert changes["s19"].p < 0.05 < changes["s19"].p_corrected
    assert changes["s19"].verdict is ChangeVerdict.TOO_LITTLE


def test_the_gravest_verdict_is_that_of_the_whole():
    better = compared(PASS, outcomes(*[1] * 12, trials=5), outcomes(*[4] * 12, trials=5))
    worse = compared(ERRORS, varied(*[0.2] * 12), varied(*[0.6] * 12))
    unclear = compared(PASS, outcomes(3, 3, trials=3), outcomes(3, 2, trials=3))
    assert decide_overall([better, worse]) is ChangeVerdict.REGRESSED
    assert decide_overall([unclear, better]) is ChangeVerdict.IMPROVED
    assert decide_overall([unclear]) is ChangeVerdict.TOO_LITTLE
    assert decide_overall([]) is ChangeVerdict.NOT_COMPARABLE


@pytest.mark.simulation
@pytest.mark.parametrize(("scenarios", "trials", "after"), DESIGNS)
def test_runs_without_a_change_raise_few_false_alarms(scenarios, trials, after):
    comparisons = 150
    shares = false_alarms(scenarios, trials, after, comparisons)
    # 5 % and two standard errors of that many comparisons.
    assert shares.alarms <= 0.05 + 2 * (0.05 * 0.95 / comparisons) ** 0.5
    assert shares.covered >= 0.9


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("scenarios", "trials", "broken", "change", "least"),
    [
        (20, 10, 2, 0.0, 0.9),
        (20, 5, 2, 0.0, 0.7),
        (10, 5, 1, 0.0, 0.4),
        (20, 5, 0, -0.15, 0.6),
        (5, 5, 0, -0.3, 0.5),
    ],
)
def test_regressions_are_found(scenarios, trials, broken, change, least):
    assert share_found(scenarios, trials, broken, change, 60) >= least


@pytest.mark.simulation
def test_stable_histories_regress_rarely():
    assert alarm_share(80) <= 0.05
