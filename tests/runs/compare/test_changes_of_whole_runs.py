"""The migration that holds runs of former days against their baselines."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from runs.models import Alert, Change, Run
from tests.builders import make_compared, make_project, make_run, make_suite

pytestmark = pytest.mark.django_db
migration = import_module("runs.migrations.0010_changes_of_whole_runs")


def migrate() -> None:
    migration.write_changes(apps, None)


@pytest.fixture
def version():
    return make_suite(make_project(), ["create", "export", "list"])


def closed(version, **outcomes: str) -> Run:
    """Return a run with a row for each scenario whose outcome flipped, as the first releases stored it."""
    run = make_compared(version, outcomes)
    Change.objects.filter(run=run, scenario=None).delete()
    for change in Change.objects.filter(run=run):
        change.verdict = "regressed" if change.before == 1.0 else "improved"
        change.save()
    return run


def whole(run: Run) -> list[tuple[str, float, float, int]]:
    return list(
        Change.objects.filter(run=run, scenario=None).values_list("verdict", "before", "after", "baseline")
    )


@pytest.mark.parametrize(
    ("outcomes", "verdict", "after"),
    [
        ({"create": "fail", "export": "pass"}, "regressed", 0.5),
        ({"create": "pass", "export": "pass"}, "same", 1.0),
        ({"create": "pass", "list": "fail"}, "same", 1.0),
    ],
    ids=["lost one", "as before", "over what both have"],
)
def test_a_run_gets_the_verdict_of_its_scenarios(version, outcomes, verdict, after) -> None:
    base, run = closed(version, create="pass", export="pass"), closed(version, **outcomes)
    migrate()
    assert whole(run) == [(verdict, 1.0, after, base.pk)]


def test_it_changes_nothing_that_is_there(version) -> None:
    closed(version, create="pass")
    run = closed(version, create="fail")
    alerts = list(Alert.objects.values_list("pk", "state"))
    scenarios = list(Change.objects.exclude(scenario=None).values_list("pk", "verdict"))
    migrate()
    migrate()
    assert len(whole(run)) == 1
    assert list(Change.objects.exclude(scenario=None).values_list("pk", "verdict")) == scenarios
    assert list(Alert.objects.values_list("pk", "state")) == alerts


def test_runs_without_baseline_or_result_or_end_get_none(version) -> None:
    first = closed(version, create="pass")
    other, errors = closed(version, list="pass"), closed(version, create="error")
    Run.objects.filter(pk=other.pk).update(baseline=first)
    running = make_run(version, state="running", baseline=first)
    migrate()
    assert [whole(run) for run in (first, other, errors, running)] == [[], [], [], []]


def test_it_does_many_runs_a_few_at_a_time(version) -> None:
    closed(version, create="pass")
    runs = [closed(version, create="pass") for _ in range(5)]
    migration.write_changes(apps, None, 2)
    assert [len(whole(run)) for run in runs] == [1] * 5


def test_an_empty_database_is_left_alone(db) -> None:
    migrate()
    assert not Change.objects.exists()
