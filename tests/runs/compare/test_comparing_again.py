"""Stored runs are compared again after an upgrade or with other smallest effects."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.models import Alert, Run
from tests.builders import make_compared, make_project, make_suite
from tests.commands.calling import call

pytestmark = pytest.mark.django_db


@pytest.fixture
def lost() -> Run:
    version = make_suite(make_project(), ["create", "export"])
    make_compared(version, {"create": "pass", "export": "pass"}, trials=6)
    return make_compared(version, {"create": "pass", "export": "fail"}, trials=6)


def test_a_larger_smallest_effect_takes_verdict_and_alert_back(lost):
    Project.objects.update(smallest_effects={"trial/pass": 1.1, "judge/judge": 1.1})
    assert call("compare_again", "--project", "tools", "--json").document == {"project": "tools", "runs": 2}
    lost.refresh_from_db()
    change = lost.changes.get(measure__name="pass", scenario=None)
    assert (lost.verdict, change.detail["below_threshold"]) == ("small_change", True)
    assert not Alert.objects.exists()


def test_an_alert_that_somebody_triaged_stays(lost):
    lost.alerts.update(triaged=True)
    Project.objects.update(smallest_effects={"trial/pass": 0.9})
    call("compare_again", "--project", "tools")
    assert Alert.objects.get().run == lost
