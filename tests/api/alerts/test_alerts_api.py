"""Triage and confirmation of regressions over REST."""

from __future__ import annotations

import pytest

from runs.models import Alert, Run
from tests.builders import make_compared, make_member, make_suite

KEYS = ("create", "export")


@pytest.fixture(autouse=True)
def no_broker(settings):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.fixture
def alerts(project):
    """Return two alerts of different branches."""
    version = make_suite(project, KEYS, name="Basics")
    good, bad = dict.fromkeys(KEYS, "pass"), dict.fromkeys(KEYS, "fail")
    before = make_compared(version, good, trials=6, tool_version="1.0")
    changes = {"options": {"baseline": str(before.pk), "trials": 6}, "tool_version": "2.0"}
    runs = [make_compared(version, bad, trials=6, branch=f"fix-{n}", **changes) for n in range(2)]
    return [Alert.objects.get(run=run) for run in runs]


def test_one_alert_has_its_evidence(api, alerts):
    answer = api("viewer").get(f"/alerts/{alerts[0].pk}")
    body = answer.json()
    assert (body["kind"], body["evidence"], body["named"]) == ("regression", "suspected", list(KEYS))
    assert api("viewer").get("/alerts/999").status_code == 404


def test_several_change_at_once(api, project, alerts):
    make_member(project, "runner", "grace")
    chosen = [{"id": alert.pk} for alert in alerts]
    answer = api("runner").patch("/alerts", {"alerts": chosen, "assignee": "grace"})
    assert answer.json() == {"changed": len(alerts)}
    assert {alert.assignee.username for alert in Alert.objects.all()} == {"grace"}
    assert api("runner").patch("/alerts", {"alerts": chosen}).status_code == 422


def test_a_confirmation_starts_both_configurations(api, alerts):
    address = f"/alerts/{alerts[1].pk}/confirm"
    assert api("viewer").post(address).status_code == 403
    answer = api("runner").post(address)
    body = answer.json()
    assert (answer.status_code, body["trials"], body["warning"]) == (202, 24, "")
    plan = "2 scenarios × 6 trials on the new and on the old configuration, in turn: 24 trials."
    assert body["plan"] == plan
    assert (
        list(Run.objects.filter(launch=body["launch"]).order_by("pk").values_list("pk", flat=True))
        == body["runs"]
    )
    again = api("runner").post(address)
    assert (again.status_code, again.json()["id"]) == (422, "alert/unconfirmable")
    assert "being confirmed already" in again.json()["detail"]


def test_a_budget_is_taken_with_a_request(api, alerts):
    target = alerts[0].run.target
    body = {"suites": ["basics"], "targets": [target.name], "max_usd": 1.5}
    answer = api("runner").post("/runs", body)
    assert Run.objects.get(pk=answer.json()["runs"][0]).max_usd == 1.5
    assert api("runner").post("/runs", {**body, "max_usd": 0}).status_code == 422
