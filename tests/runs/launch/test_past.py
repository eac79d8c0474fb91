"""What recent runs show about the next one."""

from __future__ import annotations

import pytest

from runs.launch import run_history
from runs.launch.run_history import COST, FEWEST, LAST, MOST_RUNS, PASS, SECONDS, RunHistory, read_history
from runs.models import Run
from runs.models.run import MAINLINE
from tests.builders import make_project, make_run, make_suite, make_target
from tests.runs.past_runs import past_run

pytestmark = pytest.mark.django_db
KEYS = ("create", "export")


@pytest.fixture()
def version(project):
    return make_suite(project, KEYS)


@pytest.fixture()
def target(project):
    return make_target(project)


def scenarios_of(version):
    return [entry.scenario_version.scenario_id for entry in version.entries.all()]


def history(version, *targets):
    return read_history(
        version.suite.project_id, version.suite_id, scenarios_of(version), {each.pk for each in targets}
    )


def test_it_sums_each_scenario_over_runs(version, target):
    past_run(version, {"create": ("pass", "fail"), "export": ("pass",)}, cost_usd=0.2, seconds=10)
    past_run(version, {"create": ("pass", "pass"), "export": ("fail",)}, cost_usd=0.4, seconds=30)
    arm = history(version).arm(target.pk, "")
    create, export = scenarios_of(version)
    assert arm.runs == 2
    assert (arm.scenarios[PASS][create].n, arm.scenarios[PASS][create].total) == (4, 3.0)
    assert arm.scenarios[PASS][create].squares == pytest.approx(0.25 + 1.0)
    assert arm.scenarios[PASS][create].within == pytest.approx(0.5)
    assert arm.scenarios[COST][export].mean == pytest.approx(0.3)
    assert arm.scenarios[SECONDS][create].mean_of_runs == pytest.approx(20.0)
    assert arm.aggregates[PASS].means == pytest.approx((0.5 + 1) / 2 + (1 + 0) / 2)


def test_a_partial_run_is_not_a_sample_of_the_suite(project, target):
    large = make_suite(project, ("a", "b", "c"))
    past_run(large, cost_usd=0.1)
    past_run(large, {"a": ("fail",)}, cost_usd=0.9)
    arm = history(large).arm(target.pk, "")
    assert (arm.runs, arm.aggregates[PASS].mean, arm.aggregates[COST].mean_of_runs) == (
        1,
        1.0,
        pytest.approx(0.1),
    )
    assert arm.scenarios[PASS][scenarios_of(large)[0]].n == 2


def test_errors_are_excluded_from_a_scenarios_history(version, target):
    past_run(version, {"create": ("pass", "error"), "export": ("error",)})
    arm = history(version).arm(target.pk, "")
    create, export = scenarios_of(version)
    assert arm.scenarios[PASS][create].n == 1
    assert export not in arm.scenarios[PASS]


@pytest.mark.parametrize(
    "changes",
    [{"branch": "feature/x"}, {"trigger": "confirm"}, {"trigger": "import"}, {"state": "cancelled"}],
    ids=["another branch", "a confirmation", "imported", "cancelled"],
)
def test_runs_off_the_mainline_do_not_count(version, target, changes):
    past_run(version, **changes)
    found = history(version)
    assert not (found.arms or found.targets or found.trial_costs)
    assert len(found.finished) == ("branch" in changes), "another branch may still be a baseline"


def test_runs_without_a_trial_do_not_count(version, target):
    make_run(version, error="It could not be prepared.", outcome="error")
    assert history(version) == RunHistory()


@pytest.mark.parametrize("branch", MAINLINE)
def test_the_main_branch_counts(version, target, branch):
    past_run(version, branch=branch)
    assert history(version).arm(target.pk, "").runs == 1


def test_other_projects_are_ignored(version, target):
    past_run(make_suite(make_project("other")))
    assert history(version) == RunHistory()


def test_each_target_and_model_is_estimated_separately(version, target, project):
    other = make_target(project, "other")
    past_run(version, cost_usd=1.0, model="a")
    past_run(version, cost_usd=2.0, model="b")
    past_run(version, cost_usd=3.0, target=other, model="a")
    found = history(version)
    create = scenarios_of(version)[0]
    costs = {arm: each.scenarios[COST][create].mean for arm, each in found.arms.items()}
    assert costs == {(target.pk, "a"): 1.0, (target.pk, "b"): 2.0, (other.pk, "a"): 3.0}


def test_no_model_is_the_one_that_the_target_took_last(version, target):
    past_run(version, cost_usd=1.0, model="a")
    past_run(version, cost_usd=2.0, model="b")
    create = scenarios_of(version)[0]
    assert history(version).arm(target.pk, "").scenarios[COST][create].mean == 2.0
    assert history(version).arm(target.pk, "c").runs == 0


def test_only_the_chosen_targets_are_read(version, target, project):
    other = make_target(project, "other")
    past_run(version)
    past_run(version, target=other)
    assert list(history(version, other).arms) == [(other.pk, "")]


def test_the_last_twenty_runs_count(version, target):
    for number in range(LAST + 2):
        past_run(version, {"create": ("pass",)}, cost_usd=float(number))
    create = scenarios_of(version)[0]
    found = history(version).arm(target.pk, "").scenarios[COST][create]
    assert found.runs == LAST
    assert found.mean == pytest.approx(sum(range(2, LAST + 2)) / LAST)


def test_many_targets_share_what_is_read(version, project):
    targets = [make_target(project, f"t{number}") for number in range(run_history.MOST // FEWEST + 1)]
    for target in targets:
        for _ in range(FEWEST + 1):
            past_run(version, {"create": ("pass",)}, target=target)
    found = history(version)
    assert {arm.runs for arm in found.arms.values()} == {FEWEST}


def test_what_failed_last_is_of_the_suites_last_run(version, target):
    past_run(version, {"create": ("fail",), "export": ("pass",)})
    past_run(version, {"create": ("pass",), "export": ("pass", "fail")})
    assert history(version).failed == {scenarios_of(version)[1]}


def test_what_failed_on_another_target_failed_last_too(version, target, project):
    other = make_target(project, "other")
    past_run(version, {"create": ("pass",)})
    past_run(version, {"create": ("fail",)}, target=other)
    found = history(version, target)
    create = scenarios_of(version)[0]
    assert found.failed == {create}
    assert found.arm(target.pk, "").scenarios[PASS][create].total == 1.0


def test_a_trials_cost_on_a_target_has_its_judge_in_it(version, target, project):
    past_run(version, {"create": ("pass", "error")}, cost_usd=0.1, judge_usd=0.2)
    assert history(version).trial_costs == {target.pk: pytest.approx(0.2)}


def test_a_target_without_costs_is_remembered(version, target):
    past_run(version, cost_usd=None)
    found = history(version)
    assert found.trial_costs == {target.pk: None}
    assert COST not in found.arm(target.pk, "").aggregates
    assert found.target(target.pk, "").cost is None
    assert found.target(target.pk, "").runs == 1


def test_judges_make_trials_dearer_than_their_agents(version, target):
    past_run(version, {"create": ("pass", "pass")}, cost_usd=0.1, judge_usd=0.1)
    assert history(version).arm(target.pk, "").surcharge == pytest.approx(1.5)


def test_other_suites_count_for_the_target(version, target, project):
    past_run(make_suite(project), cost_usd=0.7, seconds=5.0)
    found = history(version)
    assert found.arm(target.pk, "").runs == 0
    assert found.target(target.pk, "").cost.mean == pytest.approx(0.7)
    assert found.target(target.pk, "").seconds.mean == pytest.approx(5.0)


def test_it_shows_when_the_history_reaches_further_back(version, target):
    assert history(version).reaches_back
    run = make_run(version)
    Run.objects.bulk_create(
        Run(
            project=run.project,
            launch=run.launch,
            suite_version=version,
            suite=version.suite,
            target=run.target,
            state="finished",
            trigger="web",
        )
        for _ in range(MOST_RUNS)
    )
    assert not history(version).reaches_back


def test_it_makes_three_queries_however_many_runs(version, target, django_assert_num_queries):
    for _ in range(5):
        past_run(version)
    project, scenarios = version.suite.project_id, scenarios_of(version)
    with django_assert_num_queries(3):
        assert read_history(project, version.suite_id, scenarios).arms
