"""The queue of regressions: stars, tags, several at once, confirmation, Markdown and how long people take."""

from __future__ import annotations

import pytest

from evalhub.teams.models import ApiToken, AuditEvent
from runs.alerts.api import triage
from runs.models import Alert, Run
from tests.builders import make_compared, make_member
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ADDRESS = "/p/tools/regressions/"
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/p/tools/regressions/?assignee=ada"}
KEYS = ("create", "export")


@pytest.fixture(autouse=True)
def no_broker(settings):
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.fixture
def alerts(version):
    """Return three alerts, oldest first."""
    good, bad = dict.fromkeys(KEYS, "pass"), dict.fromkeys(KEYS, "fail")
    before = make_compared(version, good, trials=6, tool_version="1.0")
    changes = {"options": {"baseline": str(before.pk), "trials": 6}, "tool_version": "2.0"}
    runs = [make_compared(version, bad, trials=6, branch=f"fix-{n}", **changes) for n in range(3)]
    return [Alert.objects.get(run=run) for run in runs]


def fresh(alert):
    alert.refresh_from_db()
    return alert


def post(client, alert, **given):
    return client.post(f"{ADDRESS}{alert.pk}/", given)


@pytest.mark.parametrize(
    ("query", "found"),
    [("evidence=confirmed", [2]), ("evidence=not_confirmed", []), ("assignee=(nobody)", [0, 1, 2])],
)
def test_the_queue_is_filtered(signed_in, alerts, query, found):
    Alert.objects.filter(pk=alerts[2].pk).update(evidence="confirmed")
    page = parse(signed_in("viewer").get(f"{ADDRESS}?{query}"))
    runs = {each.all("h2 a")[0].text for each in page.all("article")}
    assert runs == {f"Run {alerts[each].run_id}" for each in found}


def test_several_change_at_once(signed_in, project, alerts):
    make_member(project, "author", "grace")
    selected = [alert.pk for alert in alerts[:2]]
    given = {"alert": selected, "state": "investigating", "assignee": "grace", "query": "q=Basics"}
    response = signed_in("runner").post(f"{ADDRESS}selected/", given)
    assert response.url == f"{ADDRESS}?q=Basics"
    for alert in alerts[:2]:
        assert (fresh(alert).state, alert.assignee.username) == ("investigating", "grace")
    assert (fresh(alerts[2]).state, AuditEvent.objects.filter(action="alert.triage").count()) == (
        "untriaged",
        2,
    )


def test_nothing_selected_changes_nothing(signed_in, alerts):
    client = signed_in("runner")
    none = (
        {},
        {"state": "fixed"},
        {"alert": ["x", "1"]},
        {"alert": "999"},
        {"alert": "9" * 5000, "state": "fixed"},
    )
    for given in none:
        client.post(f"{ADDRESS}selected/", given)
        assert "Nothing changed. Select regressions" in parse(client.get(ADDRESS)), given
        assert Alert.objects.filter(state="untriaged").count() == 3, given


def test_a_change_updates_state_and_tabs_at_once(signed_in, project, alerts):
    client = signed_in("runner")
    given = {"state": "acknowledged", "was-state": "untriaged"}
    response = client.post(
        f"{ADDRESS}{alerts[0].pk}/", given, headers={**HTMX, "HX-Current-URL": "http://x/"}
    )
    page = parse(response)
    assert "acknowledged" in page.all("header")[0]
    assert "Acknowledged 1" in " ".join(page.all("#tabs[hx-swap-oob=true]")[0].text.split())


def test_the_card_names_the_failing_gate(signed_in, alerts):
    card = parse(signed_in("viewer").get(ADDRESS)).all("article")[0]
    assert "file_exists failed in 12 trials: out.txt does not exist." in card


def test_a_regression_is_copied_as_markdown(signed_in, alerts):
    Alert.objects.filter(pk=alerts[0].pk).update(note="Is it *the* flag?")
    response = signed_in("viewer").get(f"{ADDRESS}{alerts[0].pk}/markdown/")
    text, run = response.content.decode(), alerts[0].run
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert text.startswith(
        f"## Regression: Basics on local, [run {run.pk}](http://testserver/p/tools/runs/{run.pk}/)\n\n**Suspected**."
    )
    assert "\n| create | 100\xa0% | 0\xa0% | out.txt does not exist. |\n" in text
    assert "\nIs it \\*the\\* flag?\n" in text


def test_the_page_of_a_run_leads_to_its_confirmation(signed_in, alerts):
    page = parse(signed_in("runner").get(f"/p/tools/runs/{alerts[0].run_id}/"))
    assert page.link("Confirm regression…").address == f"{ADDRESS}{alerts[0].pk}/confirm/"
    assert "suspected" in page


def test_a_viewer_is_offered_no_change(signed_in, alerts):
    page = parse(signed_in("viewer").get(ADDRESS))
    assert not page.all("form[method=post] [data-key]")
    assert "Confirm…" not in page


def test_what_cannot_be_confirmed_says_why(signed_in, alerts):
    Run.objects.update(tool_version="1.0")
    page = signed_in("runner").get(f"{ADDRESS}{alerts[0].pk}/confirm/")
    assert "had the same configuration, so there is no old one to run in turn." in parse(page)


def test_a_button_starts_the_confirmation(signed_in, alerts):
    alert, client = alerts[0], signed_in("runner")
    page = parse(client.get(f"{ADDRESS}{alert.pk}/confirm/"))
    assert "2 scenarios × 6 trials on the new and on the old configuration, in turn: 24 trials." in page
    response = client.post(f"{ADDRESS}{alert.pk}/confirm/")
    assert response.url.endswith(f"#alert-{alert.pk}")
    runs = Run.objects.filter(trigger="confirm")
    assert [(run.trials, run.is_experiment) for run in runs] == [(12, True)] * 2
    assert fresh(alert).evidence == "suspected"
    shown = client.get(f"{ADDRESS}{alert.pk}/evidence/")
    assert (shown.status_code, "0 of 24 trials" in parse(shown)) == (200, True)
    assert f"run {alert.run_id}" in parse(client.get(f"/p/tools/runs/{runs[0].pk}/"))
    client.post(f"{ADDRESS}{alert.pk}/confirm/")
    assert Run.objects.filter(trigger="confirm").count() == 2


def test_the_queue_takes_at_most_twelve_queries(signed_in, alerts, django_assert_max_num_queries):
    Alert.objects.filter(pk=alerts[0].pk).update(confirmation=alerts[0].run.launch)
    Alert.objects.filter(pk=alerts[1].pk).update(triaged=True)
    client = signed_in("runner")
    client.get(ADDRESS)
    with django_assert_max_num_queries(12):
        assert client.get(ADDRESS).status_code == 200


def test_home_queue_and_rest_count_open_regressions_alike(signed_in, project, alerts):
    for alert, state in zip(alerts, ("fixed", "investigating", "untriaged"), strict=True):
        if state != "untriaged":
            triage(alert, by=None, state=state)
    client = signed_in("viewer")
    assert "1 untriaged regression" in parse(client.get("/p/tools/")).links
    tabs = parse(client.get(ADDRESS)).all("#tabs a")[:3]
    assert [tab.text.split() for tab in tabs] == [
        ["Untriaged", "1"],
        ["Acknowledged"],
        ["Investigating", "1"],
    ]
    _, secret = ApiToken.issue(project, make_member(project, "viewer"), name="ci", role="viewer")
    listed = client.get("/api/v1/alerts?open=true", headers={"Authorization": f"Bearer {secret}"}).json()
    assert len(listed["items"]) == 2
