"""Which alerts a run raises, what confirms them, and what they do to their line."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from evalhub.teams.access import default_project
from evalhub.teams.models import AuditEvent, Project
from runs.alerts.notifications.messages import compose
from runs.compare.comparison import compare_with_baseline
from runs.compare.line import reference_of
from runs.engine import recording
from runs.models import Alert, Job, Notification, Run
from runs.workers.wakeups import carried_by
from scenarios.models import SuiteVersion
from tests.builders import (
    close,
    make_compared,
    make_guidance,
    make_run,
    make_suite,
    make_trials,
)
from tests.commands.calling import call
from tests.runs.alerts.notifications.channels import webhook

pytestmark = pytest.mark.django_db
KEYS = tuple(f"task-{n}" for n in range(8))
HOOK = "https://hooks.example.org/evalhub"
GOOD: Mapping[str, Sequence[str]] = {key: ["pass"] * 3 for key in KEYS}
BROKEN = {**GOOD, "task-0": ["fail"] * 3}
FALLEN = {key: ["pass", "pass", "fail"] for key in KEYS}
"""The suite fell by 33 points, and no scenario by enough to be named."""


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    return make_suite(project, KEYS, name="Basics")


def run_of(version: SuiteVersion, outcomes: Mapping[str, Sequence[str]] = GOOD, **changes: Any) -> Run:
    run = make_compared(version, outcomes, **changes)
    run.refresh_from_db()
    return run


@pytest.fixture
def steady(version: SuiteVersion) -> list[Run]:
    """Return the runs of a line, of which one trial failed in every other one."""
    mostly = {**GOOD, "task-7": ["pass", "pass", "fail"]}
    return [run_of(version, mostly if n % 2 else GOOD) for n in range(6)]


def retest(key: str, outcome: str) -> dict[str, Any]:
    kind = "fix" if outcome == "fixed" else "line"
    counts = {"first": [0, 3], "old": [18, 18], "fresh": [6, 6] if outcome == "fixed" else [0, 6]}
    return {"key": key, "planned": 6, "level": 0.001, "p": 0.0, "outcome": outcome, "kind": kind, **counts}


def named(version: SuiteVersion, key: str = "task-0", **changes: Any) -> Run:
    """Return a run in which fresh trials named a scenario."""
    return run_of(version, BROKEN, retests=[retest(key, "named")], **changes)


def only_alert() -> Alert:
    return Alert.objects.get()


def pass_rate(run: Run) -> Any:
    return run.changes.get(scenario=None, measure__layer="trial", measure__name="pass")


def test_a_loss_that_nothing_decides_joins_the_line(version: SuiteVersion, steady: list[Run]) -> None:
    lost = run_of(version, BROKEN)
    assert (lost.verdict == "regressed", Alert.objects.exists()) == (False, False)
    assert run_of(version).old_side["runs"][0] == lost.pk


def test_fresh_trials_name_a_scenario_at_once(
    version: SuiteVersion, project: Project, steady: list[Run]
) -> None:
    webhook(project, HOOK)
    run = named(version)
    alert = only_alert()
    assert (run.verdict, pass_rate(run).detail["broke"]) == ("regressed", ["task-0"])
    assert (alert.evidence, alert.named) == ("confirmed", ["task-0"])
    message = compose(Notification.objects.get())
    assert message.title.startswith("Confirmed regression: Basics")
    assert message.lines[0] == "Scenario task-0 broke."


def test_fresh_trials_name_a_scenario_against_a_single_run(version: SuiteVersion) -> None:
    first = run_of(version)
    run = named(version)
    assert (run.verdict, run.baseline, run.old_side["runs"]) == ("regressed", first, [])
    assert (only_alert().evidence, only_alert().named) == ("confirmed", ["task-0"])


def test_a_named_scenario_freezes_the_line_and_stays_red(version: SuiteVersion, steady: list[Run]) -> None:
    first = named(version)
    later = run_of(version, BROKEN)
    assert (later.verdict, later.old_side["since"]) == ("regressed", first.pk)
    assert later.old_side["runs"] == [run.pk for run in steady[::-1]]
    assert pass_rate(later).detail["broke"] == ["task-0"]
    assert only_alert().run == first
    good = run_of(version)
    assert good.verdict != "regressed"
    assert reference_of(good, "").held == {"task-0": first.pk}


def test_another_scenario_raises_an_alert_of_its_own(version: SuiteVersion, steady: list[Run]) -> None:
    named(version)
    both = {**BROKEN, "task-1": ["fail"] * 3}
    run = run_of(version, both, retests=[retest("task-1", "named")])
    assert [alert.named for alert in Alert.objects.order_by("pk")] == [["task-0"], ["task-1"]]
    assert set(pass_rate(run).detail["broke"]) == {"task-0", "task-1"}


def test_three_runs_that_do_not_look_worse_release_a_scenario(
    version: SuiteVersion, steady: list[Run]
) -> None:
    first = named(version)
    good = [run_of(version) for _ in range(3)]
    run = run_of(version)
    assert run.old_side["runs"][:4] == [*(each.pk for each in good[::-1]), first.pk]
    assert reference_of(run, "").earlier.largest == 4


def test_the_last_fixed_scenario_closes_its_alert(version: SuiteVersion, steady: list[Run]) -> None:
    named(version)
    fixed = run_of(version, retests=[retest("task-0", "fixed")])
    alert = only_alert()
    assert (alert.state, alert.decided) == ("fixed", fixed.finished)
    assert alert.reason == f"Fresh trials of run {fixed.pk} show that task-0 passes again."
    assert AuditEvent.objects.get().detail["state"] == "fixed"
    run = run_of(version)
    assert run.old_side["runs"] == [fixed.pk, *(each.pk for each in steady[::-1])]
    assert reference_of(run, "").earlier.largest == 2


def test_an_alert_stays_open_while_one_of_its_scenarios_is_broken(
    version: SuiteVersion, steady: list[Run]
) -> None:
    both = {**BROKEN, "task-1": ["fail"] * 3}
    run_of(version, both, retests=[retest("task-0", "named"), retest("task-1", "named")])
    run_of(version, {**GOOD, "task-1": ["fail"] * 3}, retests=[retest("task-0", "fixed")])
    later = run_of(version)
    assert only_alert().state == "untriaged"
    side = reference_of(later, "")
    assert (set(side.held), side.earlier.since_fixed) == ({"task-1"}, {"task-0": 1, "task-1": 1})


@pytest.mark.parametrize(
    ("next_night", "evidence", "events"),
    [(FALLEN, "confirmed", 1), (GOOD, "not_confirmed", 0)],
    ids=["worse, too", "good"],
)
def test_the_next_run_decides_on_a_suspected_suite(
    version: SuiteVersion,
    project: Project,
    steady: list[Run],
    next_night: Mapping[str, Sequence[str]],
    evidence: str,
    events: int,
) -> None:
    webhook(project, HOOK)
    fallen = run_of(version, FALLEN)
    assert (fallen.verdict, only_alert().evidence, only_alert().named) == ("regressed", "suspected", [])
    assert not Notification.objects.exists()
    second = run_of(version, next_night)
    assert (only_alert().evidence, Notification.objects.count()) == (evidence, events)
    assert second.old_side["runs"] == [run.pk for run in steady[::-1]]
    third = run_of(version)
    joined = fallen.pk in third.old_side["runs"]
    assert joined is (evidence == "not_confirmed")
    assert Notification.objects.count() == events


def test_a_suspected_suite_on_a_frozen_line_is_decided_too(version: SuiteVersion, steady: list[Run]) -> None:
    first = named(version)
    worse = run_of(version, {**FALLEN, "task-0": ["fail"] * 3})
    assert Alert.objects.get(run=worse).evidence == "suspected"
    run_of(version, BROKEN)
    assert [(each.run, each.evidence) for each in Alert.objects.order_by("pk")] == [
        (first, "confirmed"),
        (worse, "not_confirmed"),
    ]


def test_a_message_is_sent_when_its_run_closes(
    version: SuiteVersion, project: Project, steady: list[Run]
) -> None:
    webhook(project, HOOK)
    run = named(version)
    sent: list[tuple[object, ...]] = []
    with carried_by(lambda *task: sent.append(task)):
        recording.follow_close(run)
    assert sent == [("do_job", Job.objects.get(kind="channel").pk)]


def test_a_project_may_hear_of_suspected_ones(
    version: SuiteVersion, project: Project, steady: list[Run]
) -> None:
    project.notify_when = "at_once"
    project.save()
    webhook(project, HOOK)
    run_of(version, FALLEN)
    assert compose(Notification.objects.get()).title.startswith("Suspected regression: ")
    run_of(version, FALLEN)
    assert Notification.objects.count() == 1


def test_a_young_line_is_decided_by_the_next_run_too(version: SuiteVersion) -> None:
    run_of(version)
    run_of(version, dict.fromkeys(KEYS, ["fail"] * 3))
    assert only_alert().evidence == "suspected"
    run_of(version, dict.fromkeys(KEYS, ["fail"] * 3))
    assert only_alert().evidence == "confirmed"


def test_scenarios_that_fell_with_the_suite_join_its_alert(version: SuiteVersion, steady: list[Run]) -> None:
    bad = {**GOOD, **dict.fromkeys(KEYS[:5], ["fail"] * 3)}
    run_of(version, bad)
    assert (only_alert().evidence, only_alert().named) == ("suspected", [])
    run_of(version, bad)
    assert (only_alert().evidence, only_alert().named) == ("confirmed", list(KEYS[:5]))


def test_a_suite_that_falls_while_a_scenario_is_broken_raises_one_more(
    version: SuiteVersion, steady: list[Run]
) -> None:
    named(version)
    run_of(version, {**FALLEN, "task-0": ["fail"] * 3})
    assert [alert.named for alert in Alert.objects.order_by("pk")] == [["task-0"], []]


def test_a_window_lies_within_one_guidance(version: SuiteVersion, steady: list[Run]) -> None:
    guidance = make_guidance(version.suite)
    first = run_of(version, guidance=guidance)
    side = reference_of(first, "")
    assert (len(side.line), side.earlier.largest) == (6, 1)
    for _ in range(4):
        run_of(version, guidance=guidance)
    assert len(reference_of(run_of(version, guidance=guidance), "").line) == 5


def test_a_window_lies_within_one_branch(version: SuiteVersion, steady: list[Run]) -> None:
    first = run_of(version, branch="fix")
    side = reference_of(first, "")
    assert (len(side.line), side.earlier.largest) == (6, 1)
    assert reference_of(run_of(version), "").earlier.largest == 7


COSTS = (0.10, 0.11, 0.10, 0.12, 0.11, 0.10)


def dear(version: SuiteVersion, cost: float, factor: float = 1.0, **changes: Any) -> Run:
    """Return a run whose trials cost this much each, the last scenario's a multiple of it."""
    run = make_run(version, **changes)
    for key in KEYS:
        own = cost * (factor if key == KEYS[-1] else 1.0)
        outcomes = ["pass", "pass", *(["error"] if key == KEYS[0] else [])]
        make_trials(run, {key: outcomes}, cost_usd=own, seconds=own * 100)
    run.trial_set.filter(outcome="error").update(cost_usd=40.0)
    compare_with_baseline(close(run))
    run.refresh_from_db()
    return run


def test_dearer_trials_raise_an_alert_that_freezes_their_own_line(
    version: SuiteVersion, project: Project
) -> None:
    webhook(project, HOOK)
    before = [dear(version, cost) for cost in COSTS]
    assert not Alert.objects.exists()
    run = dear(version, 0.16, factor=4)
    alert = only_alert()
    assert (alert.kind, alert.evidence, run.verdict == "regressed") == ("dearer", "confirmed", False)
    message = compose(Notification.objects.get())
    assert message.title == f"Dearer: Basics on local, run {run.pk}"
    assert message.lines == ["A typical trial +79 %, the bill +106 %."]
    later = dear(version, 0.16)
    assert later.old_side["runs"][0] == run.pk
    cost = reference_of(later, "").amounts["dearer"]
    assert [run.pk for run in cost.old] == [each.pk for each in before[::-1]]
    assert (cost.pending, Alert.objects.count()) == (1, 1)


def test_slower_trials_raise_an_alert_where_a_project_wants_it(
    version: SuiteVersion, project: Project
) -> None:
    project.alert_dearer, project.alert_slower = False, True
    project.save()
    for cost in COSTS:
        dear(version, cost)
    run = dear(version, 0.2)
    assert (only_alert().kind, run.old_side["red"]) == ("slower", ["dearer", "slower"])


def test_a_run_may_have_an_alert_of_each_kind(version: SuiteVersion) -> None:
    for cost in COSTS:
        dear(version, cost)
    dear(version, 0.2, retests=[retest("task-0", "named")])
    assert {alert.kind for alert in Alert.objects.all()} == {"regression", "dearer"}


def write_nights(folder: Path, nights: int, broken_from: int) -> list[str]:
    """Write the results of hourly runs, in which one scenario fails every trial from a run on."""
    rng = random.Random(20261129)
    rates = {"export": 1.0, **{f"task-{n}": rng.choice([1.0, 0.97, 0.9, 0.8]) for n in range(1, 12)}}
    files = []
    for night in range(1, nights + 1):
        at = timezone.now() - timedelta(hours=nights - night)
        rows = [
            {
                "timestamp": (at + timedelta(seconds=place)).isoformat(),
                "suite": "nightly",
                "tool": "claude-code",
                "model": "m1",
                "scenario_id": name,
                "outcome": "Fail"
                if (name == "export" and night >= broken_from) or rng.random() >= rate
                else "Pass",
            }
            for place, (name, rate) in enumerate(each for each in rates.items() for _ in range(3))
        ]
        path = folder / f"night-{night:02d}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        files.append(str(path))
    return files


@pytest.mark.django_db(transaction=True)
def test_imports_name_a_broken_scenario_by_the_third_night(tmp_path: Path) -> None:
    webhook(default_project(), HOOK)
    assert call("import_results", *write_nights(tmp_path, 15, broken_from=11)).code == 0
    runs = list(Run.objects.order_by("pk"))
    assert [run.verdict == "regressed" for run in runs[:10]] == [False] * 10
    assert [run.verdict for run in runs[12:]] == ["regressed"] * 3
    assert [pass_rate(run).detail["broke"] for run in runs[12:]] == [["export"]] * 3
    alert = only_alert()
    assert (alert.evidence, alert.named, alert.run in runs[10:13]) == ("confirmed", ["export"], True)
    assert Notification.objects.count() == 1
