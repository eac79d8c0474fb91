"""A regression after new guidance or a new model raises an alert of its own kind, and freezes the line until decided."""

from __future__ import annotations

from typing import Any

import pytest

from evalhub.teams.access import default_project
from evalhub.teams.models import Project
from runs.alerts.api import triage
from runs.alerts.notifications.messages import compose
from runs.compare.differences import worse_after
from runs.models import Alert, Notification, Run
from runs.models.comparison import AlertState
from scenarios.models import ScenarioVersion, Suite, SuiteVersion, Upload
from tests.builders import make_compared, make_guidance, make_member, make_suite
from tests.commands.calling import call
from tests.runs.alerts.notifications.channels import webhook
from tests.runs.carrying import suite_of
from tests.runs.confirming import WANTED, answers

pytestmark = pytest.mark.django_db
KEYS = ("create", "export", "list", "remove")
GOOD = {key: ["pass"] * 5 for key in KEYS}
BAD = {**GOOD, "create": ["fail"] * 5, "export": ["fail"] * 5}
FINGERPRINT = {"target": "local", "provider": "mock", "model": "small", "judge": "j"}
HOOK = "https://hooks.example.org/evalhub"


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    return make_suite(project, KEYS, name="Basics")


def run_of(version: SuiteVersion, outcomes: Any = GOOD, **changes: Any) -> Run:
    fingerprint = {**FINGERPRINT, **changes.pop("fingerprint", {})}
    run = make_compared(version, outcomes, fingerprint=fingerprint, **changes)
    run.refresh_from_db()
    return run


@pytest.fixture
def steady(version: SuiteVersion) -> list[Run]:
    return [run_of(version) for _ in range(6)]


@pytest.fixture
def guided(version: SuiteVersion, steady: list[Run]) -> Run:
    """Return a run that regressed with new guidance."""
    return run_of(version, BAD, guidance=make_guidance(version.suite, "shorter"))


def test_new_guidance_that_made_things_worse_raises_an_alert(guided: Run) -> None:
    alert = Alert.objects.get()
    assert (alert.kind, alert.run, guided.verdict) == ("after_change", guided, "regressed")
    assert worse_after(guided) == "Worse after guidance shorter"


def test_guidance_without_a_name_is_called_by_its_number(version: SuiteVersion, steady: list[Run]) -> None:
    guidance = make_guidance(version.suite, "")
    run = run_of(version, BAD, guidance=guidance)
    assert worse_after(run) == f"Worse after guidance {guidance.number}"


def test_guidance_that_was_removed_is_no_guidance(version: SuiteVersion) -> None:
    guidance = make_guidance(version.suite, "long")
    for _ in range(5):
        run_of(version, guidance=guidance)
    assert worse_after(run_of(version, BAD)) == "Worse without guidance"


def test_a_new_model_that_made_things_worse_raises_an_alert(version: SuiteVersion, steady: list[Run]) -> None:
    run = run_of(version, BAD, fingerprint={"model": "large"})
    assert Alert.objects.get().kind == "after_change"
    assert worse_after(run) == "Worse after model large"


def test_without_a_change_the_alert_is_the_tools(version: SuiteVersion, steady: list[Run]) -> None:
    run_of(version, BAD, tool_version="2.0")
    assert Alert.objects.get().kind == "regression"


@pytest.mark.parametrize("also", [{}, {"guidance": True}], ids=["judge alone", "judge and guidance"])
def test_nothing_is_claimed_after_a_change_of_judge(version: SuiteVersion, also: dict[str, bool]) -> None:
    run_of(version)
    given = {"guidance": make_guidance(version.suite)} if also else {}
    run = run_of(version, BAD, fingerprint={"judge": "k"}, **given)
    assert (run.verdict, run.configuration_changed) == ("regressed", True)
    assert not Alert.objects.exists()


def test_nothing_is_claimed_after_a_change_of_gates(version: SuiteVersion, steady: list[Run]) -> None:
    ScenarioVersion.objects.update(gates_hash="g")
    later = SuiteVersion.objects.create(suite=version.suite, number=2, sha256="f" * 64)
    for position, old in enumerate(version.scenario_versions.order_by("pk")):
        new = ScenarioVersion.objects.create(
            scenario=old.scenario,
            sha256=f"{position:064x}",
            content=old.content,
            task_hash=old.task_hash,
            gates_hash="g2",
        )
        later.entries.create(scenario_version=new, position=position)
    run = run_of(later, BAD, guidance=make_guidance(version.suite))
    assert run.verdict != "regressed"
    assert not Alert.objects.exists()


def test_an_experiment_with_other_guidance_raises_none(version: SuiteVersion, steady: list[Run]) -> None:
    run = run_of(version, BAD, guidance=make_guidance(version.suite), is_experiment=True)
    assert run.verdict == "regressed"
    assert not Alert.objects.exists()


def test_it_freezes_the_line(version: SuiteVersion, steady: list[Run], guided: Run) -> None:
    later = run_of(version, BAD, guidance=guided.guidance)
    assert (later.verdict, later.old_side["since"]) == ("regressed", guided.pk)
    assert later.old_side["runs"] == [run.pk for run in steady[::-1]]
    assert Alert.objects.count() == 1


def test_an_intended_change_begins_a_new_line(version: SuiteVersion, project: Project, guided: Run) -> None:
    alert = triage(Alert.objects.get(), by=make_member(project), state=AlertState.WONT_FIX)
    assert alert.state_label == "Intended"
    later = run_of(version, BAD, guidance=guided.guidance)
    assert (later.baseline, later.old_side["since"], later.verdict == "regressed") == (guided, None, False)


def test_a_fixed_change_goes_on_with_the_old_line(
    version: SuiteVersion, project: Project, steady: list[Run], guided: Run
) -> None:
    triage(Alert.objects.get(), by=make_member(project), state=AlertState.FIXED)
    later = run_of(version)
    assert later.old_side["runs"] == [run.pk for run in steady[::-1]]
    assert (later.old_side["since"], later.configuration_changed) == (None, False)


def test_a_change_that_nobody_was_asked_about_still_begins_a_new_line(
    version: SuiteVersion, guided: Run
) -> None:
    Alert.objects.all().delete()
    assert run_of(version, BAD, guidance=guided.guidance).baseline == guided


def test_it_is_an_event_that_channels_choose(version: SuiteVersion, project: Project, steady: Any) -> None:
    project.notify_when = "at_once"
    project.save()
    webhook(project, HOOK, "regression", name="tool")
    webhook(project, HOOK, "after_change", name="guidance")
    run = run_of(version, BAD, guidance=make_guidance(version.suite, "shorter"))
    (notification,) = Notification.objects.all()
    assert notification.event == "after_change"
    assert list(notification.deliveries.values_list("channel__name", flat=True)) == ["guidance"]
    message = compose(notification)
    assert message.title == f"Worse after guidance shorter: Basics on local, run {run.pk}"
    assert message.data["changed"] == "after guidance shorter"


@pytest.mark.django_db(transaction=True)
def test_it_ends_a_command_with_3_if_asked() -> None:
    project = default_project()
    version = suite_of(project, **dict.fromkeys(("add", "create", "export", "list"), WANTED))
    answers(project, "done")
    words = ("run_scenarios", version.suite.slug, "--now", "--trials", "6")
    assert call(*words).code == 0
    suite = Suite.objects.get(pk=version.suite_id)
    Upload.objects.create(suite=suite, suite_version=version, guidance=make_guidance(suite, "shorter"))
    answers(project, "I can't.")
    assert call(*words, "--fail-on-regression").code == 3
    assert Alert.objects.get().kind == "after_change"
    assert call(*words).code == 1
