"""*Confirm…*: an alert's new and old configuration run in turn, and decide on it."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.utils import timezone

from runs.alerts.notifications.messages import compose
from runs.compare.baselines import set_baseline
from runs.compare.comparison import compare_with_baseline
from runs.compare.home_page.views import project_summary
from runs.compare.raised_alerts import conclude
from runs.compare.trend_series import TrendFilters, newest_runs_of_suite
from runs.engine import recording
from runs.errors import RequestError, Unconfirmable
from runs.launch.confirmation import plan_confirmation, start_confirmation
from runs.models import Alert, Channel, Notification, Run, Trial
from tests.runs.carrying import suite_of
from tests.runs.confirming import WANTED, answers, carried, confirmed, regressed

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.one_database]


def arms(launch):
    return list(launch.runs.order_by("pk"))


def events():
    return list(Notification.objects.values_list("event", flat=True))


def test_both_configurations_run_again_confirm_and_notify(project):
    Channel.objects.create(project=project, name="a", kind="slack", events=["regression"])
    alert = regressed(project)
    assert (alert.evidence, events()) == ("suspected", [])
    alert, launch = confirmed(alert)
    new, old = arms(launch)
    assert (alert.evidence, [run.outcome for run in (new, old)]) == ("confirmed", ["fail", "pass"])
    said = "Both configurations ran again, in turn: Pass rate −100 points (12 and 12 trials)."
    assert (alert.reason, alert.triaged, events()) == (said, False, ["regression"])
    message = compose(Notification.objects.get())
    assert message.title.startswith("Confirmed regression: ")
    assert said in message.lines
    old_version = Run.objects.get(pk=alert.run.baseline_id).target_version
    assert old.target_version == old_version != new.target_version
    assert old.fingerprint["target_sha256"] == alert.run.baseline.fingerprint["target_sha256"]


def test_the_sides_take_turns(project):
    alert = regressed(project)
    _, launch = confirmed(alert)
    order = list(Trial.objects.filter(run__launch=launch).order_by("started").values_list("run", flat=True))
    assert sum(map(int.__ne__, order, order[1:])) > len(order) / 2


def test_the_scenarios_run_that_the_alert_names_else_all(project):
    alert = regressed(project)
    plan = plan_confirmation(alert)
    assert plan.sentence == (
        "2 scenarios × 6 trials on the new and on the old configuration, in turn: 24 trials."
    )
    alert.named = ["export"]
    (new, old) = plan_confirmation(alert).arms
    assert [[each.key for each in planned.scenarios] for planned in (new, old)] == [["export"]] * 2
    assert new.trials == 6


def test_what_only_chance_made_bad_is_not_confirmed(project):
    Channel.objects.create(project=project, name="a", kind="slack", events=["regression"])
    alert = regressed(project)
    version = alert.run.target_version
    version.definition = {**version.definition, "response": "done"}
    version.save()
    alert, _ = confirmed(alert)
    assert (alert.evidence, alert.decided is not None, events()) == ("not_confirmed", True, [])
    with pytest.raises(Unconfirmable, match="decided already"):
        start_confirmation(alert, by=None)


def test_the_same_configuration_is_no_old_one(project):
    version = suite_of(project, create=WANTED, export=WANTED)
    answers(project, "done")
    carried(version)
    answers(project, "I can't.")
    alert = Alert.objects.get(run=carried(version))
    Run.objects.update(target_version=None)
    with pytest.raises(Unconfirmable, match="had the same configuration"):
        plan_confirmation(alert)


def test_another_tool_version_is_no_old_configuration(project):
    alert = regressed(project)
    Run.objects.filter(pk=alert.run.baseline_id).update(tool_version="tool 1.0")
    alert, _ = confirmed(alert)
    assert (alert.evidence, alert.confirmation) == ("suspected", None)
    assert alert.reason.startswith(
        "The old configuration can't run any more: This needs the tool version “tool 1.0”"
    )


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


def test_a_drift_is_not_confirmed_by_running_again(project):
    alert = regressed(project)
    alert.kind = "drift"
    with pytest.raises(Unconfirmable, match="Only a regression"):
        plan_confirmation(alert)


def test_confirmation_runs_are_no_baseline_and_raise_no_alert(project):
    _, launch = confirmed(regressed(project))
    assert Alert.objects.count() == 1
    assert all(run.is_experiment for run in arms(launch))
    with pytest.raises(RequestError, match="only confirms another"):
        set_baseline(arms(launch)[0], by=None)


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


def test_a_budget_that_is_spent_decides_nothing(project):
    alert, launch = confirmed(regressed(project))
    _, old = arms(launch)
    Run.objects.filter(pk=old.pk).update(cancelled=3)
    with transaction.atomic():
        conclude(launch.pk)
    alert.refresh_from_db()
    assert alert.reason == "The budget was reached before both configurations had run."
    assert alert.confirmation is None


def test_confirmations_are_no_part_of_a_trend_or_the_home(project):
    alert, launch = confirmed(regressed(project))
    runs = {run.pk for run in arms(launch)}
    lines = project_summary(project, now=timezone.now()).lines.lines
    assert [line.latest.run.id for line in lines] == [alert.run_id]
    assert not runs & {run.pk for run in newest_runs_of_suite(alert.run.suite_id, TrendFilters())}
