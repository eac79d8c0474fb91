"""Alerts that fresh trials confirm, or don't."""

from __future__ import annotations

import re

import pytest
from django.db import transaction
from django.utils import timezone

from evalhub.teams.models import Project
from runs.alerts.notifications.messages import compose
from runs.compare.baselines import set_baseline
from runs.compare.comparison import compare_with_baseline
from runs.compare.confirmation import TOO_THIN, conclude
from runs.compare.home_page.project_home import project_summary
from runs.compare.trend_runs import TrendFilters, newest_runs_of_suite
from runs.engine import recording
from runs.engine.reaper import reap
from runs.engine.run_here import run_here
from runs.errors import RequestError, Unconfirmable
from runs.launch.confirmation import plan_confirmation, start_confirmation
from runs.models import Alert, Change, Channel, Notification, Run, Trial
from tests.builders import make_project
from tests.runs.carrying import suite_of
from tests.runs.confirming import WANTED, answers, carried, confirmed, regressed

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def project():
    return make_project()


def arms(launch):
    return list(launch.runs.order_by("pk"))


def test_both_configurations_run_again_and_confirm(project):
    alert, launch = confirmed(regressed(project))
    new, old = arms(launch)
    assert (alert.evidence, [run.outcome for run in (new, old)]) == ("confirmed", ["fail", "pass"])
    assert alert.reason.startswith("Fresh trials against the old configuration: Pass rate 100 % → 0 %")
    assert (
        old.target_version == Run.objects.get(pk=alert.run.baseline_id).target_version != new.target_version
    )
    assert old.fingerprint["target_sha256"] == alert.run.baseline.fingerprint["target_sha256"]
    assert (alert.fresh[0]["confirms"], alert.first_triaged) == (True, None)


def test_the_sides_take_turns(project):
    alert = regressed(project)
    _, launch = confirmed(alert)
    order = list(Trial.objects.filter(run__launch=launch).order_by("started").values_list("run", flat=True))
    assert sum(map(int.__ne__, order, order[1:])) > len(order) / 2


def drifted(project, earlier, keys=("create", "export")):
    """Return an alert whose run had the configuration of its baseline, after so many earlier runs."""
    version = suite_of(project, **dict.fromkeys(keys, WANTED))
    answers(project, "done")
    for _ in range(earlier + 1):
        carried(version)
    Run.objects.update(target_version=None)
    answers(project, "I can't.")
    alert = Alert.objects.get(run=carried(version))
    Run.objects.update(target_version=None)
    return alert


def test_only_the_affected_scenarios_run_again(project):
    version = suite_of(project, create=WANTED, export=WANTED, list={"criteria": {"gates": []}})
    answers(project, "done")
    carried(version)
    answers(project, "I can't.")
    alert = Alert.objects.get(run=carried(version))
    plan = plan_confirmation(alert)
    assert [[each.key for each in planned.scenarios] for _, planned in plan.arms] == [
        ["create", "export"]
    ] * 2
    assert plan.sentence == (
        "2 scenarios × 4 trials on each configuration: 16 trials. A change of 70 points, 70 % of what is suspected, is"
        " confirmed in 93 % of cases, one of 58 points four times out of five."
    )


def test_without_the_old_configuration_earlier_runs_compare(project):
    alert, launch = confirmed(drifted(project, earlier=1))
    assert len(arms(launch)) == 1
    assert alert.evidence == "confirmed"
    assert alert.reason.startswith("Fresh trials against 1 earlier run: Pass rate 100 % → 0 %")


def test_without_earlier_runs_the_baseline_is_too_thin(project):
    with pytest.raises(Unconfirmable, match="Baseline too thin"):
        plan_confirmation(drifted(project, earlier=0))


def test_what_only_chance_made_bad_is_not_confirmed(project):
    alert = drifted(project, earlier=2)
    answers(project, "done")
    alert, _ = confirmed(alert)
    assert (alert.evidence, alert.fresh[0]["p"]) == ("not_confirmed", 0.5)
    assert alert.fresh[0]["power"] >= 0.8
    assert alert.reason.startswith("Fresh trials against 2 earlier runs: ")
    with pytest.raises(Unconfirmable, match="decided already"):
        start_confirmation(alert, by=None)


def test_another_tool_version_is_no_old_configuration(project):
    alert = regressed(project)
    carried(alert.run.suite_version)
    Run.objects.filter(pk=alert.run.baseline_id).update(tool_version="tool 1.0")
    alert, launch = confirmed(alert)
    old = arms(launch)[1]
    assert old.error == "This needs the tool version “tool 1.0”, and the worker has “unknown”."
    assert (alert.evidence, alert.reason.partition(" They")[0]) == ("not_confirmed", TOO_THIN)


def test_a_cancelled_confirmation_leaves_a_suspicion(project):
    alert = regressed(project)
    launch = start_confirmation(alert, by=None)
    for run in arms(launch):
        recording.cancel_run(run.pk)
    alert.refresh_from_db()
    assert (alert.evidence, alert.reason) == ("suspected", "The confirmation was cancelled.")
    start_confirmation(alert, by=None)


def test_it_is_confirmed_once_at_a_time(project):
    alert = regressed(project)
    start_confirmation(alert, by=None)
    with pytest.raises(Unconfirmable, match="being confirmed already"):
        start_confirmation(alert, by=None)


def test_too_few_allowed_trials_are_refused(project):
    alert = regressed(project)
    project.confirm_trials = 5
    project.save()
    with pytest.raises(Unconfirmable, match="needs 8 trials, and the project's settings allow 5"):
        plan_confirmation(alert)


def test_confirmation_runs_are_no_baseline_and_raise_no_alert(project):
    _, launch = confirmed(regressed(project))
    assert Alert.objects.count() == 1
    assert all(run.is_experiment for run in arms(launch))
    with pytest.raises(RequestError, match="only confirms another"):
        set_baseline(arms(launch)[0], by=None)


def events():
    return list(Notification.objects.values_list("event", flat=True))


def test_a_project_that_confirms_notifies_of_confirmed_alerts_only(project):
    Channel.objects.create(project=project, name="a", kind="slack", events=["regression"])
    Project.objects.update(confirm_alerts=True)
    alert = regressed(project)
    assert (alert.evidence, events()) == ("confirming", [])
    launch = alert.confirmation
    run_here(launch)
    alert.refresh_from_db()
    assert (alert.evidence, events()) == ("confirmed", ["regression"])
    message = compose(Notification.objects.get())
    assert message.title.startswith("Confirmed regression: ")
    assert alert.reason in message.lines


def chance_alone(project, trials):
    """Return an alert that chance raised, confirmed by so many trials at most."""
    Channel.objects.create(project=project, name="a", kind="slack", events=["regression"])
    Project.objects.update(confirm_trials=trials)
    alert = drifted(project, earlier=1, keys=["create"])
    Project.objects.update(confirm_alerts=True)
    Notification.objects.all().delete()
    answers(project, "done")
    return confirmed(alert)[0]


def test_trials_too_few_to_confirm_say_so_and_notify(project):
    alert = chance_alone(project, trials=3)
    assert (alert.evidence, alert.fresh[0]["trials"]) == ("not_confirmed", [6, 3])
    assert re.match(
        r"Could not be confirmed with 3 trials: they find a change of 70 points in \d\d % of cases\. Fresh trials",
        alert.reason,
    )
    assert events() == ["regression"]
    message = compose(Notification.objects.get())
    assert message.title.startswith("Suspected regression: ")
    assert message.lines[-2:] == [
        f"Compared with run {alert.run.baseline_id}; could not be confirmed.",
        alert.reason,
    ]


def test_trials_that_could_have_confirmed_notify_of_nothing(project):
    assert chance_alone(project, trials=60).evidence == "not_confirmed"
    assert events() == []


def test_a_broken_scenario_alone_is_confirmed(project):
    keys = [f"s{n}" for n in range(9)]
    flaky = {"criteria": {"expect": {"response_contains": ["never"]}}}
    version = suite_of(project, **dict.fromkeys(keys, flaky), create=WANTED)
    answers(project, "done")
    carried(version, trials=8)
    answers(project, "I can't.")
    alert = Alert.objects.get(run=carried(version, trials=8))
    Change.objects.filter(run=alert.run, scenario=None, measure__name="pass").update(verdict="too_little")
    for each in Change.objects.filter(run=alert.run, scenario=None, measure__name="pass"):
        each.detail["verdict"] = "too_little"
        each.save()
    plan = plan_confirmation(alert)
    assert [each.key for each in plan.arms[0][1].scenarios] == ["create"]


def test_elsewhere_the_suspicion_notifies_once(project):
    Channel.objects.create(project=project, name="a", kind="slack", events=["regression"])
    confirmed(regressed(project))
    assert events() == ["regression"]


def test_an_automatic_confirmation_that_cannot_start_says_why_and_notifies(project):
    Channel.objects.create(project=project, name="a", kind="slack", events=["regression"])
    Project.objects.update(confirm_alerts=True, confirm_trials=2)
    alert = regressed(project)
    assert alert.evidence == "not_confirmed"
    assert "needs 8 trials" in alert.reason
    assert events() == ["regression"]
    assert alert.reason in compose(Notification.objects.get()).lines


def test_the_tick_starts_and_concludes_what_a_lost_worker_left(project):
    alert = regressed(project)
    Alert.objects.update(evidence="confirming")
    reap()
    alert.refresh_from_db()
    run_here(alert.confirmation)
    Alert.objects.update(evidence="confirming", reason="")
    reap()
    alert.refresh_from_db()
    assert alert.evidence == "confirmed"


@pytest.mark.parametrize(
    ("part", "kinds"), [("model", ["after_change"]), ("judge", []), ("judge_sha256", [])]
)
def test_another_model_or_judge_is_a_changed_configuration(project, part, kinds):
    alert = regressed(project)
    run, baseline = alert.run, alert.run.baseline
    for each, value in ((baseline, "one"), (run, "two")):
        each.fingerprint[part] = value
        each.save()
    compare_with_baseline(run)
    assert (run.configuration_changed, list(Alert.objects.values_list("kind", flat=True))) == (True, kinds)


BUDGET_REACHED = "The budget was reached before the fresh trials could decide."


def test_a_budget_stops_both_sides(project):
    Project.objects.update(confirm_usd=0.5)
    alert, launch = confirmed(regressed(project, cost_usd=0.25))
    assert sum(run.cost_usd or 0 for run in arms(launch)) <= 0.75
    assert Trial.objects.filter(run__launch=launch, error="The budget of $0.50 was reached.").count() >= 5
    assert (alert.evidence, alert.reason, alert.fresh) == ("not_confirmed", BUDGET_REACHED, [])


def test_a_budget_spent_on_one_side_is_the_reason(project):
    Project.objects.update(confirm_usd=0.5)
    alert, launch = confirmed(regressed(project, cost_usd=0.25))
    new, old = arms(launch)
    old.trial_set.update(state="cancelled", outcome="")
    Run.objects.filter(pk=new.pk).update(cost_usd=0.5)
    Alert.objects.update(evidence="confirming")
    with transaction.atomic():
        conclude(launch.pk)
    alert.refresh_from_db()
    assert (alert.evidence, alert.reason) == ("not_confirmed", BUDGET_REACHED)


def test_confirmations_are_no_part_of_a_trend_or_the_home(project):
    alert, launch = confirmed(regressed(project))
    runs = {run.pk for run in arms(launch)}
    lines = project_summary(project, now=timezone.now()).lines.lines
    assert [line.latest.run.id for line in lines] == [alert.run_id]
    assert not runs & {run.pk for run in newest_runs_of_suite(alert.run.suite_id, TrendFilters())}
