"""Runs against their baselines."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent, Project
from runs.errors import RequestError
from runs.models import Alert, Change, Run
from runs.warehouse.baselines import check_choice, set_baseline, unset_baseline
from runs.warehouse.comparison import compare_with_baseline, comparison_of, passes
from scenarios.models import SuiteVersion
from tests.builders import close, make_member, make_project, make_run, make_suite, make_target, make_trial

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    return make_suite(project, ["create", "export", "list"])


def closed(version: SuiteVersion, outcomes: dict[str, str | list[str]], **changes: object) -> Run:
    """Return a closed run with these outcomes by scenario."""
    run = make_run(version, **changes)
    for key, found in outcomes.items():
        for outcome in [found] if isinstance(found, str) else found:
            make_trial(run, key, outcome=outcome)
    close(run)
    compare_with_baseline(run)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize(
    ("outcomes", "passed"),
    [
        (["pass", "pass"], True),
        (["pass", "fail"], False),
        (["pass", "error"], True),
        (["error", "error"], False),
        (["error", "fail"], False),
    ],
    ids=["all pass", "one fails", "an error does not count", "errors alone", "error and fail"],
)
def test_a_scenario_passed_when_all_its_trials_but_errors_did(
    version: SuiteVersion, outcomes: list[str], passed: bool
) -> None:
    assert passes(closed(version, {"create": outcomes}).pk) == {"create": passed}


def test_nothing_is_compared_without_a_baseline(version: SuiteVersion) -> None:
    run = closed(version, {"create": "fail"})
    assert run.baseline is None
    assert not comparison_of(run).regressions
    assert not Change.objects.exists()


def test_the_last_passing_run_is_the_baseline_where_none_is_pinned(version: SuiteVersion) -> None:
    closed(version, {"create": "pass"})
    last = closed(version, {"create": "pass"})
    closed(version, {"create": "fail"})
    run = closed(version, {"create": "fail"})
    assert run.baseline == last
    assert comparison_of(run).regressions == ("create",)


def test_a_run_of_another_target_or_model_is_no_baseline(project: Project, version: SuiteVersion) -> None:
    closed(version, {"create": "pass"}, target=make_target(project, "other"))
    closed(version, {"create": "pass"}, target=make_target(project, "local"), model="large")
    run = closed(version, {"create": "fail"}, target=project.targets.get(name="local"))
    assert run.baseline is None


def test_the_pin_of_the_branch_comes_before_the_general_one(version: SuiteVersion) -> None:
    general, branch = closed(version, {"create": "pass"}), closed(version, {"create": "pass"})
    set_baseline(general, by=None)
    set_baseline(branch, by=None, branch="next")
    assert closed(version, {"create": "fail"}, branch="next").baseline == branch
    assert closed(version, {"create": "fail"}, branch="main").baseline == general


def test_a_choice_made_with_the_request_wins_over_a_pin(version: SuiteVersion) -> None:
    pinned, chosen = closed(version, {"create": "fail"}), closed(version, {"create": "pass"})
    set_baseline(pinned, by=None)
    by_number = closed(version, {"create": "fail"}, options={"baseline": str(chosen.pk)})
    last_pass = closed(version, {"create": "fail"}, options={"baseline": "last-pass"})
    assert (by_number.baseline, last_pass.baseline) == (chosen, chosen)


def test_changes_go_both_ways_and_regressions_alert(version: SuiteVersion) -> None:
    closed(version, {"create": "pass", "export": "pass"})
    set_baseline(closed(version, {"create": "pass", "export": "fail"}), by=None)
    run = closed(version, {"create": ["pass", "fail"], "export": "pass", "list": "pass"})
    changes = {
        str(change.scenario and change.scenario.key): (change.verdict, change.before, change.after)
        for change in run.changes.all()
    }
    assert changes == {
        "create": ("regressed", 1.0, 0.5),
        "export": ("improved", 0.0, 1.0),
        # Of the whole: what both runs have.
        "None": ("regressed", 0.5, 0.75),
    }
    assert run.alert.state == "untriaged"
    assert comparison_of(run).added == ("list",)


def test_a_scenario_of_which_only_errors_are_left_has_no_verdict(version: SuiteVersion) -> None:
    closed(version, {"create": "pass", "export": "pass"})
    run = closed(version, {"create": "error", "export": "pass"})
    assert comparison_of(run).regressions == ("create",)
    assert [(each.scenario, each.verdict) for each in run.changes.all()] == [(None, "same")]
    assert not Alert.objects.exists()


def test_comparing_again_replaces_what_was_found_before(version: SuiteVersion) -> None:
    closed(version, {"create": "pass"})
    run = closed(version, {"create": "fail"})
    compare_with_baseline(run)
    assert {each.verdict for each in run.changes.all()} == {"regressed"}
    run.trial_set.update(outcome="pass")
    close(run)
    compare_with_baseline(run)
    assert [(each.scenario, each.verdict) for each in run.changes.all()] == [(None, "same")]
    assert not Alert.objects.exists()


def test_an_unfinished_run_cannot_be_pinned(version: SuiteVersion) -> None:
    with pytest.raises(RequestError, match="did not finish"):
        set_baseline(make_run(version, state="running"), by=None)


def test_pinning_and_unpinning_is_audited(project: Project, version: SuiteVersion) -> None:
    user = make_member(project)
    baseline = set_baseline(closed(version, {"create": "pass"}), by=user)
    unset_baseline(baseline, by=user)
    actions = list(AuditEvent.objects.filter(user=user).values_list("action", flat=True))
    assert actions == ["baseline.unset", "baseline.set"]


def test_a_baseline_that_does_not_exist_is_refused_with_the_request(
    project: Project, version: SuiteVersion
) -> None:
    run = closed(version, {"create": "pass"})
    check_choice(project.pk, str(run.pk))
    check_choice(project.pk, "last-pass")
    for wrong in ("999999", "yesterday"):
        with pytest.raises(RequestError, match="There is no run"):
            check_choice(project.pk, wrong)
    with pytest.raises(RequestError):
        check_choice(make_project("other").pk, str(run.pk))
