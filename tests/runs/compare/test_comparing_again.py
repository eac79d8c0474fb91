"""Stored runs are compared again after an upgrade or with other smallest effects."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.compare.comparison import compare_old_runs
from runs.models import Alert, Change, Run
from tests.builders import make_compared, make_project, make_suite
from tests.commands.calling import call

pytestmark = pytest.mark.django_db


@pytest.fixture
def lost() -> Run:
    version = make_suite(make_project(), ["create", "export"])
    make_compared(version, {"create": "pass", "export": "pass"}, trials=6)
    return make_compared(version, {"create": "pass", "export": "fail"}, trials=6)


def test_runs_of_an_older_release_get_their_verdict(lost):
    Change.objects.filter(run=lost).update(detail={}, verdict="no_evidence")
    Run.objects.update(verdict="")
    Alert.objects.all().delete()
    assert compare_old_runs() == 1
    lost.refresh_from_db()
    assert (lost.verdict, lost.alert.state) == ("regressed", "untriaged")
    assert call("compare_again", "--old").out.strip() == "0 runs compared again."


def test_a_larger_smallest_effect_takes_verdict_and_alert_back(lost):
    Project.objects.update(smallest_effects={"trial/pass": 1.1, "judge/judge": 1.1})
    assert call("compare_again", "--project", "tools", "--json").document == {"project": "tools", "runs": 2}
    lost.refresh_from_db()
    change = lost.changes.get(measure__name="pass", scenario=None)
    assert (lost.verdict, change.detail["below_threshold"]) == ("small_change", True)
    assert not Alert.objects.exists()


def test_an_alert_that_somebody_triaged_stays(lost):
    lost.alert.first_triaged = lost.finished
    lost.alert.save()
    Project.objects.update(smallest_effects={"trial/pass": 0.9})
    call("compare_again", "--project", "tools")
    assert Alert.objects.get() == lost.alert
