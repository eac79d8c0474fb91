"""Runs against their baselines."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent, Project
from runs.alerts.api import triage
from runs.compare.baselines import check_choice, set_baseline, unset_baseline
from runs.compare.comparison import (
    HISTORY_RUNS,
    compare_named,
    compare_with_baseline,
    comparison_of,
    failing_since,
    read_passes,
)
from runs.errors import RequestError
from runs.models import Alert, Change, Measure, Run, RunMeasure
from scenarios.models import SuiteVersion
from tests.builders import (
    close,
    make_compared,
    make_guidance,
    make_member,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_trials,
    scores_of,
)

pytestmark = pytest.mark.django_db
PASSES, FAILS = ["pass"] * 6, ["fail"] * 6


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    return make_suite(project, ["create", "export", "list"])


def closed(version: SuiteVersion, outcomes: dict[str, str | list[str]], **changes: object) -> Run:
    """Return a closed run with these outcomes by scenario."""
    run = make_run(version, **changes)
    make_trials(run, {key: [found] if isinstance(found, str) else found for key, found in outcomes.items()})
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
    assert read_passes(closed(version, {"create": outcomes}).pk) == {"create": passed}


def test_nothing_is_compared_without_a_baseline(version: SuiteVersion) -> None:
    run = closed(version, {"create": "fail"})
    assert run.baseline is None
    assert not comparison_of(run).regressions
    assert not Change.objects.exists()


def test_the_newest_finished_run_is_the_baseline_without_a_pin(version: SuiteVersion) -> None:
    closed(version, {"create": "pass"})
    last = closed(version, {"create": "fail"})
    closed(version, {"create": "error"})
    closed(version, {"create": "pass"}, is_experiment=True)
    make_run(version, state="cancelled")
    make_run(version, outcome="error", error="It could not be prepared.")
    assert closed(version, {"create": "fail"}).baseline == last


def test_a_partial_run_is_not_a_baseline_of_all(version: SuiteVersion) -> None:
    whole = closed(version, {"create": "pass", "export": "pass"})
    part = closed(version, {"create": "pass"})
    assert closed(version, {"create": "pass", "export": "pass"}).baseline == whole
    assert closed(version, {"create": "pass"}).baseline != whole
    assert part.baseline == whole


def test_an_experiment_is_compared_like_others_and_never_alerts(version: SuiteVersion) -> None:
    earlier = closed(version, {"create": PASSES})
    experiment = closed(version, {"create": FAILS}, is_experiment=True)
    assert (experiment.baseline, experiment.verdict) == (earlier, "regressed")
    assert not Alert.objects.exists()


def test_an_arm_that_closed_first_is_compared_later(version: SuiteVersion) -> None:
    old = make_run(version, is_experiment=True, arm="reference")
    new = closed(version, {"create": FAILS}, is_experiment=True, options={"baseline": str(old.pk)})
    assert new.verdict == ""
    make_trials(old, {"create": PASSES})
    compare_with_baseline(close(old))
    compare_named(old)
    new.refresh_from_db()
    assert (new.baseline, new.verdict, old.baseline) == (old, "regressed", None)


def test_newly_adopted_guidance_changes_the_configuration_once(version: SuiteVersion) -> None:
    closed(version, {"create": PASSES})
    guidance = make_guidance(version.suite)
    first = closed(version, {"create": FAILS}, guidance=guidance)
    assert (first.verdict, first.configuration_changed) == ("regressed", True)
    alert = Alert.objects.get()
    assert alert.kind == "after_change"
    triage(alert, by=None, state="wont_fix")
    second = closed(version, {"create": PASSES}, guidance=guidance)
    assert (second.baseline, second.configuration_changed) == (first, False)


def test_another_target_or_model_is_not_a_baseline(project: Project, version: SuiteVersion) -> None:
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


def test_last_pass_says_what_it_compared_with(version: SuiteVersion) -> None:
    first = closed(version, {"create": "fail"}, options={"baseline": "last-pass"})
    assert (first.baseline, first.verdict) == (None, "")
    assert first.warnings == [
        "Baseline last-pass: no earlier run passed every trial, so there is nothing to compare with."
    ]
    passed = closed(version, {"create": "pass"})
    run = closed(version, {"create": "fail"}, options={"baseline": "last-pass"})
    compare_with_baseline(run)
    (warning,) = run.warnings
    assert f"compared with run {passed.pk}." in warning and "makes luck look like a regression" in warning


def test_a_regression_of_a_headline_measure_alerts(version: SuiteVersion) -> None:
    closed(version, {"create": FAILS, "export": FAILS})
    set_baseline(closed(version, {"create": PASSES, "export": FAILS}), by=None)
    run = closed(version, {"create": FAILS, "export": ["pass", *["fail"] * 7], "list": "pass"})
    changes = {
        str(change.scenario and change.scenario.key): (
            change.verdict,
            change.before,
            round(change.after or 0, 6),
        )
        for change in run.changes.filter(measure__name="pass")
    }
    assert changes == {
        "create": ("regressed", 1.0, 0.0),
        "export": ("too_little", 0.0, 0.125),
        # The mean over the scenarios that both runs have.
        "None": ("regressed", 0.5, 0.0625),
    }
    whole = run.changes.get(measure__name="pass", scenario=None).detail
    assert (whole["worse"], whole["better"], whole["scenarios"]) == (1, 1, 2)
    assert whole["lower"] <= whole["effect"] <= whole["upper"]
    assert (run.verdict, run.alerts.get().state) == ("regressed", "untriaged")
    assert comparison_of(run).added == ("list",)


def test_one_lost_trial_raises_no_alert(version: SuiteVersion) -> None:
    closed(version, {"create": ["pass"] * 3, "export": ["pass"] * 3})
    run = closed(version, {"create": ["pass", "pass", "fail"], "export": ["pass"] * 3})
    assert run.verdict == "too_little"
    assert not Alert.objects.exists()
    assert comparison_of(run).regressions == ("create",), "the contract's own list counts every flip"


def test_a_scenario_of_which_only_errors_are_left_has_no_verdict(version: SuiteVersion) -> None:
    closed(version, {"create": "pass", "export": ["pass"] * 3})
    run = closed(version, {"create": "error", "export": ["pass"] * 3})
    assert comparison_of(run).regressions == ("create",)
    changes = run.changes.filter(measure__name="pass")
    assert [(each.scenario, each.verdict) for each in changes] == [(None, "too_little")]
    assert not Alert.objects.exists()


def test_comparing_again_replaces_what_was_found_before(version: SuiteVersion) -> None:
    closed(version, {"create": PASSES})
    run = closed(version, {"create": FAILS})
    compare_with_baseline(run)
    assert Alert.objects.get().run == run
    run.trial_set.update(outcome="pass", scores=scores_of("pass"))
    close(run)
    compare_with_baseline(run)
    changes = run.changes.filter(measure__name="pass")
    assert [(each.scenario, each.verdict) for each in changes] == [(None, "too_little")]
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


def test_a_series_of_failures_begins_after_the_last_pass(version):
    runs = [make_compared(version, {"create": outcome}) for outcome in ("fail", "pass", "fail", "fail")]
    scenario = version.entries.get(scenario_version__scenario__key="create").scenario_version.scenario_id
    assert failing_since(runs[-1], [scenario]) == {scenario: runs[2].pk}


@pytest.mark.parametrize("last_passed", [None, 3])
def test_a_series_of_failures_is_followed_over_hundreds_of_runs(version, last_passed):
    run = make_run(version)
    values = {name: getattr(run, name) for name in ("project", "launch", "suite_version", "suite", "target")}
    Run.objects.bulk_create(Run(**values) for _ in range(2 * HISTORY_RUNS))
    numbers = sorted(Run.objects.values_list("pk", flat=True))
    measure = Measure.objects.create(layer="trial", name="pass")
    scenario = version.entries.first().scenario_version.scenario_id
    RunMeasure.objects.bulk_create(
        RunMeasure(
            run_id=key, scenario_id=scenario, measure=measure, n=1, mean=float(n == last_passed), m2=0.0
        )
        for n, key in enumerate(numbers)
    )
    since = failing_since(Run.objects.latest("pk"), [scenario])
    assert since == {scenario: numbers[0 if last_passed is None else last_passed + 1]}
