"""A decline that no single run shows raises an alert of its own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evalhub.teams.models import Project
from runs.alerts.api import triage
from runs.alerts.notifications.messages import compose
from runs.compare.amounts import drift_sentence
from runs.compare.shown_changes import since_words
from runs.models import Alert, Notification, Run
from runs.models.comparison import AlertState
from scenarios.models import SuiteVersion
from tests.builders import (
    close,
    make_compared,
    make_member,
    make_run,
    make_suite,
    make_trials,
    make_version,
)
from tests.runs.alerts.notifications.channels import webhook

pytestmark = pytest.mark.django_db
KEYS = ("create", "export", "list", "remove")
EARLIER = (*[19] * 10, *[18] * 10, *[17] * 9)
"""Passed trials of 20 in 29 runs; no run is a regression of the line before it."""


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    return make_suite(project, KEYS)


def outcomes(passed: int) -> dict[str, list[str]]:
    share, more = divmod(passed, len(KEYS))
    good = {key: share + (at < more) for at, key in enumerate(KEYS)}
    return {key: ["pass"] * n + ["fail"] * (5 - n) for key, n in good.items()}


def run_of(version: SuiteVersion, passed: int, **changes: object) -> Run:
    run = make_compared(version, outcomes(passed), **changes)
    run.refresh_from_db()
    return run


@pytest.fixture
def earlier(version: SuiteVersion) -> list[Run]:
    """Return closed runs, of which only the members of the line are asked."""
    runs = [make_run(version) for _ in EARLIER]
    for run, passed in zip(runs, EARLIER, strict=True):
        make_trials(run, outcomes(passed))
        close(run)
    return runs


def test_a_slow_decline_raises_an_alert_and_freezes_nothing(
    version: SuiteVersion, project: Project, earlier: list[Run]
) -> None:
    webhook(project, "https://hooks.example.org/evalhub", "regression")
    last = run_of(version, 17)
    assert last.verdict not in ("regressed", "improved")
    (alert,) = Alert.objects.all()
    assert (alert.kind, alert.run, alert.evidence) == ("drift", last, "confirmed")
    assert alert.drift["since"] == earlier[20].pk
    assert drift_sentence(alert.drift) == (
        f"The pass rate fell from 95 % to 85 %: runs {earlier[20].pk} to {last.pk} together are below the oldest 10 of 30."
    )
    message = compose(Notification.objects.get())
    assert message.title.startswith(f"Drift: {version.suite.name} on local, run ")
    assert message.lines == [drift_sentence(alert.drift)]
    after = run_of(version, 17)
    assert (Alert.objects.count(), after.old_side["since"]) == (1, None)
    assert last.pk in after.old_side["runs"]
    triage(alert, by=make_member(project), state=AlertState.WONT_FIX)
    run_of(version, 17)
    assert Alert.objects.count() == 1


def test_a_decline_that_chance_explains_is_said_of_a_calm_run(version: SuiteVersion) -> None:
    passed = [20, 16, 20, 17, 19] * 5 + [20, 12, 18, 12]
    runs = [make_run(version) for _ in passed]
    for at, (run, number) in enumerate(zip(runs, passed, strict=True)):
        make_trials(run, outcomes(number))
        close(run)
        Run.objects.filter(pk=run.pk).update(finished=timezone.now() - timedelta(days=33 - at))
    last = run_of(version, 17)
    assert not Alert.objects.exists()
    assert since_words(last.old_side) == ", 6 points below a month ago"


def test_too_few_runs_are_no_drift(version: SuiteVersion, earlier: list[Run]) -> None:
    earlier[0].delete()
    run_of(version, 17)
    assert not Alert.objects.exists()


def test_an_edited_scenario_is_no_drift(version: SuiteVersion, earlier: list[Run]) -> None:
    edited = make_version(version.suite, **{key: {"prompt": "Do it."} for key in KEYS})
    run_of(edited, 17)
    assert not Alert.objects.exists()


def test_a_drift_of_an_experiment_raises_nothing(version: SuiteVersion, earlier: list[Run]) -> None:
    run_of(version, 17, is_experiment=True)
    assert not Alert.objects.exists()
