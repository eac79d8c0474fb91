"""A decline that no single run shows raises an alert of its own."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.alerts.notifications.messages import compose
from runs.alerts.triage import triage
from runs.compare.drift import drift_sentence
from runs.models import Alert, Notification, Run
from runs.models.comparison import AlertState
from scenarios.models import SuiteVersion
from tests.builders import make_compared, make_member, make_project, make_suite, make_version
from tests.runs.alerts.notifications.channels import webhook

pytestmark = pytest.mark.django_db
KEYS = ("create", "export", "list", "remove")
STEADY = (76, 75, 77, 76, 75, 76)
DECLINE = (75, 73, 72, 70, 69)
"""Passed trials of 80; no run is a regression of the line before it."""


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    return make_suite(project, KEYS)


def run_of(version: SuiteVersion, passed: int, **changes: object) -> Run:
    share, more = divmod(passed, len(KEYS))
    outcomes = {key: ["pass"] * (share + (at < more)) for at, key in enumerate(KEYS)}
    run = make_compared(
        version, {key: each + ["fail"] * (20 - len(each)) for key, each in outcomes.items()}, **changes
    )
    run.refresh_from_db()
    return run


@pytest.fixture
def declined(version: SuiteVersion) -> list[Run]:
    return [run_of(version, passed) for passed in (*STEADY, *DECLINE)]


def test_a_slow_decline_raises_an_alert(declined: list[Run]) -> None:
    assert not {"regressed", "improved"} & {each.verdict for each in declined}
    (alert,) = Alert.objects.all()
    assert (alert.kind, alert.run) == ("drift", declined[-1])
    assert alert.drift["since"] == declined[7].pk
    assert drift_sentence(alert.drift) == (
        f"The pass rate fell from 95 % to 89 % from run {declined[7].pk} on, which the last 11 runs show together and no "
        "single one does."
    )


def test_a_drift_is_notified_as_one(version: SuiteVersion, project: Project) -> None:
    webhook(project, "https://hooks.example.org/evalhub", "regression")
    for passed in (*STEADY, *DECLINE):
        run_of(version, passed)
    message = compose(Notification.objects.get())
    assert message.title.startswith(f"Drift: {version.suite.name} on local, run ")
    assert message.lines == [drift_sentence(Alert.objects.get().drift)]


def test_an_open_drift_is_not_raised_again_and_freezes_nothing(
    version: SuiteVersion, declined: list[Run]
) -> None:
    after = run_of(version, 68)
    assert Alert.objects.count() == 1
    assert after.old_side["since"] is None
    assert declined[-1].pk in after.old_side["runs"]


def test_a_decided_drift_starts_the_search_again(
    version: SuiteVersion, project: Project, declined: list[Run]
) -> None:
    triage(Alert.objects.get(), by=make_member(project), state=AlertState.WONT_FIX)
    for _ in range(3):
        run_of(version, 69)
    assert Alert.objects.count() == 1


def test_an_edited_scenario_is_no_drift(version: SuiteVersion) -> None:
    for passed in STEADY:
        run_of(version, passed)
    edited = make_version(version.suite, **{key: {"prompt": "Do it."} for key in KEYS})
    for passed in DECLINE:
        run_of(edited, passed)
    assert not Alert.objects.exists()


def test_a_drift_of_an_experiment_raises_nothing(version: SuiteVersion) -> None:
    for passed in (*STEADY, *DECLINE[:-1]):
        run_of(version, passed)
    run_of(version, DECLINE[-1], is_experiment=True)
    assert not Alert.objects.exists()
