"""A run that is compared again, as after a changed score, follows its project's smallest effects."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.compare.comparison import compare_with_baseline
from runs.models import Alert, Run
from tests.builders import make_compared, make_project, make_suite

pytestmark = pytest.mark.django_db


@pytest.fixture
def lost() -> Run:
    version = make_suite(make_project(), ["create", "export"])
    make_compared(version, {"create": "pass", "export": "pass"}, trials=6)
    return make_compared(version, {"create": "pass", "export": "fail"}, trials=6)


def compare_again(run: Run) -> None:
    run.refresh_from_db()
    compare_with_baseline(run)


def test_a_larger_smallest_effect_takes_verdict_and_alert_back(lost):
    Project.objects.update(smallest_effects={"trial/pass": 1.1, "judge/judge": 1.1})
    compare_again(lost)
    change = lost.changes.get(measure__name="pass", scenario=None)
    assert (lost.verdict, change.detail["below_threshold"]) == ("small_change", True)
    assert not Alert.objects.exists()


def test_an_alert_that_somebody_triaged_stays(lost):
    lost.alerts.update(triaged=True)
    Project.objects.update(smallest_effects={"trial/pass": 0.9})
    compare_again(lost)
    assert Alert.objects.get().run == lost
