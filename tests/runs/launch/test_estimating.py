"""What a plan costs, how long it takes and what it can show."""

from __future__ import annotations

import pytest

from evaluators.statistics.power import RateTestLevel, expected_rates, find_detectable_drop
from runs.launch.estimate import OFFERED, UNDETECTABLE, estimate_plan
from runs.launch.request import Request, plan
from runs.launch.run_history import read_history
from runs.models.run_options import RunOptions, Selection
from tests.builders import make_project, make_suite, make_target
from tests.runs.past_runs import past_run

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
KEYS = ("a", "b", "c", "d", "e", "f")


@pytest.fixture
def project():
    made = make_project()
    make_target(made)
    return made


@pytest.fixture
def version(project):
    return make_suite(project, KEYS)


def reckoned(version, *, trials=1, judged=True, only=(), **asked):
    options = RunOptions(trials=trials, concurrency=asked.pop("concurrency", None))
    request = Request([version], options=options, selection=Selection(only=only), **asked)
    planned = plan(version.suite.project, request)
    scenarios = [entry.scenario_version.scenario_id for entry in version.entries.all()]
    past = read_history(
        version.suite.project_id, version.suite_id, scenarios, {each.run.target.pk for each in planned}
    )
    return estimate_plan(planned, past, judged=judged, smallest=0.05)


def outcomes(*failing, trials=3):
    return {key: ["fail" if key in failing else "pass"] * trials for key in KEYS}


def test_each_scenario_costs_and_takes_what_it_did(version):
    for seconds in (10.0, 20.0, 30.0):
        past_run(version, {"a": ("pass",)}, cost_usd=seconds / 100, seconds=seconds)
        past_run(version, {"b": ("pass",)}, cost_usd=1.0, seconds=100.0)
    found = reckoned(version, trials=2, only=("a",)).chosen
    assert found.cost.expected == pytest.approx(2 * 0.2)
    assert found.seconds == pytest.approx(2 * 20.0)


def test_a_scenario_that_is_new_costs_what_the_suite_does(version):
    past_run(version, {"a": ("pass",)}, cost_usd=0.2)
    past_run(version, {"b": ("pass",)}, cost_usd=0.4)
    assert reckoned(version, only=("c",)).chosen.cost.expected == pytest.approx(0.3)
    assert reckoned(version, only=("a", "b", "c")).chosen.cost.expected == pytest.approx(0.9)


def test_a_suite_that_is_new_costs_what_its_target_does(version, project):
    past_run(make_suite(project), cost_usd=0.5, seconds=7.0)
    found = reckoned(version)
    assert found.chosen.cost.expected == pytest.approx(6 * 0.5)
    assert found.chosen.seconds == pytest.approx(6 * 7.0)
    assert found.chosen.change is None


def test_without_any_run_nothing_is_guessed(version):
    found = reckoned(version)
    assert (found.chosen.cost, found.chosen.seconds, found.chosen.change) == (None, None, None)
    assert (found.ran, found.costed, found.timed) == (False, 0, 0)
    assert found.lacking == ["No runs on this target yet, so no estimate."]


def test_an_unreported_cost_is_not_zero(version):
    past_run(version, cost_usd=None)
    found = reckoned(version)
    assert (found.ran, found.chosen.cost) == (True, None)
    assert found.chosen.seconds == pytest.approx(60.0)


def test_judges_cost_only_where_they_are_asked(version):
    past_run(version, cost_usd=0.1, judge_usd=0.6)
    assert reckoned(version).chosen.cost.expected == pytest.approx(1.2)
    assert reckoned(version, judged=False).chosen.cost.expected == pytest.approx(0.6)


def test_three_runs_tell_a_range(version):
    for cost in (0.1, 0.2):
        past_run(version, cost_usd=cost)
    assert reckoned(version).chosen.cost.half is None
    past_run(version, cost_usd=0.3)
    found = reckoned(version).chosen.cost
    assert found.expected == pytest.approx(1.2)
    # One trial of each scenario: 4.303 standard deviations, of a run and of the mean of three.
    assert found.half == pytest.approx(6 * 4.303 * 0.1 * (4 / 3) ** 0.5, rel=0.01)


@pytest.mark.parametrize(
    ("concurrency", "workers", "at_once", "rounds"),
    [
        (None, None, 1, 12),
        (4, None, 4, 3),
        (5, None, 5, 3),
        (100, None, 12, 1),
        (None, 3, 3, 4),
        (8, 3, 3, 4),
    ],
)
def test_time_follows_from_how_many_are_carried_at_once(
    version, project, concurrency, workers, at_once, rounds
):
    project.targets.update(workers=workers)
    past_run(version, seconds=5.0)
    found = reckoned(version, trials=2, concurrency=concurrency)
    assert found.at_once == at_once
    assert found.chosen.seconds == pytest.approx(rounds * 5.0)


def test_targets_work_side_by_side(version, project):
    past_run(version, seconds=5.0)
    past_run(version, seconds=20.0, target=make_target(project, "slow"))
    found = reckoned(version, targets=["local", "slow"])
    assert found.at_once == 2
    assert found.chosen.seconds == pytest.approx(120.0)
    assert found.chosen.cost.expected == pytest.approx(1.2)


def test_long_times_are_shown_in_minutes(version):
    past_run(version, seconds=61.0)
    assert reckoned(version).chosen.seconds == 360.0


def test_the_detectable_change_comes_from_the_pass_rates_of_past_runs(version):
    for failing in (("a",), ("a", "b"), ("b",), ()):
        past_run(version, outcomes(*failing))
    found = reckoned(version, trials=5)
    (run,) = found.runs
    rates = expected_rates([6, 6, 12, 12, 12, 12], [12] * 6)
    assert found.chosen.change == find_detectable_drop(rates, [3] * 6, [5] * 6, RateTestLevel(0.03, 0.05))
    assert 0.05 < found.chosen.change < 1
    assert found.lacking == []
    assert (found.weakest, run.usual) == (run, 3)


def test_more_trials_show_smaller_changes(version):
    for failing in (("a",), ("a", "b"), ("b",)):
        past_run(version, outcomes(*failing))
    found = reckoned(version, trials=7)
    assert [choice.trials for choice in found.choices] == sorted({*OFFERED, 7})
    assert [choice.trials for choice in found.choices if choice.is_chosen] == [7]
    changes = [choice.change for choice in found.choices]
    assert changes == sorted(changes, reverse=True)


def test_one_run_and_a_few_scenarios_are_enough(version):
    past_run(version, outcomes("a"))
    found = reckoned(version, only=("a", "b", "c", "d"), trials=5)
    assert 0.1 < found.chosen.change < 1
    assert found.lacking == []


@pytest.mark.parametrize(
    ("only", "trials", "sentence"),
    [
        (("b",), 3, "So few trials can't reach a verdict, whatever they show."),
        (("b", "c"), 2, "miss even the loss of every pass."),
    ],
    ids=["one scenario", "two of two"],
)
def test_designs_that_find_nothing_say_so(version, only, trials, sentence):
    past_run(version, outcomes("a", trials=trials))
    found = reckoned(version, only=only, trials=trials)
    assert found.chosen.change == UNDETECTABLE
    assert found.lacking[0].endswith(sentence)


def test_a_design_without_a_verdict_says_so_before_any_run(version):
    assert (
        "So few trials can't reach a verdict, whatever they show."
        in reckoned(version, only=("a",), trials=3).lacking
    )


def test_scenarios_that_never_ran_take_the_usual_rate(version):
    for _ in range(3):
        past_run(version, {"a": ("pass",) * 3, "b": ("fail",) * 3})
    found = reckoned(version, trials=5)
    assert found.runs[0].before == [3] * 6
    assert 0 < found.chosen.change < UNDETECTABLE


def test_of_several_runs_the_one_that_shows_least_counts(version, project):
    other = make_target(project, "other")
    for failing in (("a",), ("a", "b"), ("b",)):
        past_run(version, outcomes(*failing))
        past_run(version, outcomes(), target=other)
    found = reckoned(version, targets=["local", "other"])
    changes = {each.planned.run.target.name: each.change(1) for each in found.runs}
    assert found.chosen.change == max(changes.values()) > min(changes.values())
    assert changes[found.weakest.planned.run.target.name] == found.chosen.change


def test_what_is_not_known_is_left_out_and_named(version, project):
    for number in range(4):
        make_target(project, f"new-{number}")
    past_run(version, cost_usd=0.1)
    names = ["local", *(f"new-{number}" for number in range(4))]
    found = reckoned(version, targets=names)
    assert found.chosen.cost.expected == pytest.approx(0.6)
    assert (found.costed, found.timed) == (6, 6)
    assert found.lacking[0] == "new-0; new-1; new-2; and 1 more: no runs on this target yet, so no estimate."


def test_a_model_that_is_new_is_not_known(version):
    past_run(version, model="old")
    found = reckoned(version, models=["old", "new"])
    assert found.lacking[0] == "local, new: no runs on this target yet, so no estimate."
