"""Triage and confirmation of regressions over REST."""

from __future__ import annotations

import pytest

from evalhub.api import openapi_document
from runs.models import Alert, Run
from tests.builders import make_compared, make_member, make_suite

KEYS = ("create", "export")


@pytest.fixture(autouse=True)
def no_broker(settings):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.fixture
def alerts(project):
    """Return two alerts of a line with an earlier run beside the baseline."""
    version = make_suite(project, KEYS, name="Basics")
    make_compared(version, dict.fromkeys(KEYS, "pass"), trials=6)
    before = make_compared(version, dict.fromkeys(KEYS, "pass"), trials=6)
    pinned = {"options": {"baseline": str(before.pk)}}
    runs = [make_compared(version, dict.fromkeys(KEYS, "fail"), trials=6, **pinned) for _ in range(2)]
    return [Alert.objects.get(run=run) for run in runs]


def test_one_alert_has_its_evidence(api, alerts):
    answer = api("viewer").get(f"/alerts/{alerts[0].pk}")
    body = answer.json()
    assert (body["evidence"], body["fresh"], body["tags"], body["starred"]) == ("suspected", [], [], False)
    assert api("viewer").get("/alerts/999").status_code == 404


def test_a_star_and_tags_are_set(api, alerts):
    answer = api("runner").patch(f"/alerts/{alerts[0].pk}", {"starred": True, "tags": ["night"]})
    body = answer.json()
    assert (body["starred"], body["tags"], body["revision"], body["first_triaged"]) == (
        True,
        ["night"],
        1,
        None,
    )
    for query in ("starred=true", "tag=night"):
        listed = api("viewer").get(f"/alerts?{query}").json()["items"]
        assert [each["id"] for each in listed] == [alerts[0].pk]


def test_a_stale_revision_is_refused(api, alerts):
    client, address = api("runner"), f"/alerts/{alerts[0].pk}"
    assert client.patch(address, {"state": "fixed", "revision": 0}).status_code == 200
    answer = client.patch(address, {"state": "invalid", "revision": 0})
    assert (answer.status_code, answer.json()["id"]) == (409, "alert/stale")
    assert Alert.objects.get(pk=alerts[0].pk).state == "fixed"
    documented = openapi_document()["paths"]["/alerts/{alert_id}"]["patch"]["responses"]
    assert str(answer.status_code) in map(str, documented)


def test_several_change_and_the_stale_one_is_listed(api, project, alerts):
    make_member(project, "runner", "grace")
    Alert.objects.filter(pk=alerts[1].pk).update(revision=4)
    chosen = [{"id": alert.pk, "revision": 0} for alert in alerts]
    answer = api("runner").patch("/alerts", {"alerts": chosen, "assignee": "grace", "tag": "night"})
    body = answer.json()
    assert (body["changed"], len(body["left"])) == (1, 1)
    assert Alert.objects.get(pk=alerts[0].pk).assignee.username == "grace"
    assert api("runner").patch("/alerts", {"alerts": chosen}).status_code == 422


def test_a_confirmation_starts_and_says_what_it_can_show(api, alerts):
    address = f"/alerts/{alerts[1].pk}/confirm"
    assert api("viewer").post(address).status_code == 403
    answer = api("runner").post(address)
    body = answer.json()
    assert (answer.status_code, body["trials"], body["warning"]) == (202, 6, "")
    assert body["plan"].startswith("2 scenarios × 3 trials on the new configuration: 6 trials.")
    assert list(Run.objects.filter(launch=body["launch"]).values_list("pk", flat=True)) == body["runs"]
    again = api("runner").post(address)
    assert (again.status_code, again.json()["id"]) == (422, "alert/unconfirmable")
    assert "being confirmed already" in again.json()["detail"]


def test_a_budget_is_taken_with_a_request(api, alerts):
    target = alerts[0].run.target
    body = {"suites": ["basics"], "targets": [target.name], "max_usd": 1.5}
    answer = api("runner").post("/runs", body)
    assert Run.objects.get(pk=answer.json()["runs"][0]).max_usd == 1.5
    assert api("runner").post("/runs", {**body, "max_usd": 0}).status_code == 422
