"""Regressions as a queue of work."""

from __future__ import annotations

from copy import copy

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Alert, Run
from tests.builders import make_compared, make_guidance, make_member, make_project, make_suite
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ADDRESS = "/p/tools/regressions/"
HTMX = {"HX-Request": "true"}


def ran(version, *failing, **changes):
    """Return a closed run in which these scenarios failed, compared with its baseline."""
    outcomes = {key: "fail" if key in failing else "pass" for key in ("create", "export")}
    return make_compared(version, outcomes, trials=6, **changes)


def cards(response):
    """Return the regressions that a page shows, in its order."""
    return parse(response).all("article")


def title(card):
    return card.all("h2 a")[0].text


def alert_of(run):
    return Alert.objects.get(run=run)


def send(client, run, headers=None, **given):
    return client.post(f"{ADDRESS}{alert_of(run).pk}/", given, headers=headers or {})


def test_it_shows_that_nothing_regressed(signed_in):
    assert "No regressions" in parse(signed_in("viewer").get(ADDRESS))


def test_it_shows_what_was_lost_and_where_to_look(signed_in, version):
    before = ran(version)
    run = ran(version, "export")
    (article,) = cards(signed_in("viewer").get(ADDRESS, {"open": alert_of(run).pk}))
    failing = list(run.trial_set.filter(scenario__key="export").order_by("pk").values_list("pk", flat=True))
    (row,) = article.table(f"Regressed scenarios of run {run.pk}").rows
    assert [row.header, row.cell("Baseline").text, row.cell("Now").text] == ["export", "100 %", "0 %"]
    assert row.cell("Trial").text == ", ".join(f"trial {pk}" for pk in failing[:5])
    assert "▼ Pass rate −50 points (−71 to −29), 1 of 2 comparable scenarios worse." in article
    assert "▼ Judge score" in article
    strips = article.all(".broken")[0]
    assert [each["aria-label"] for each in strips.all(".dots")] == ["6 passed", "6 failed"]
    assert article.link(f"run {before.pk}").address == f"/p/tools/runs/{before.pk}/"
    assert article.link(f"trial {failing[0]}").address == f"/p/tools/trials/{failing[0]}/"


def test_it_knows_since_when_a_scenario_fails(signed_in, version):
    ran(version, "export")
    ran(version)
    first = ran(version, "export")
    pinned = {"options": {"baseline": str(first.pk - 1)}}
    ran(version, "export", branch="fix-1", **pinned)
    newest = ran(version, "export", branch="fix-2", **pinned)
    shown = cards(signed_in().get(ADDRESS))
    assert title(shown[0]) == f"Run {newest.pk}"
    assert [card.facts.get("Failing since") for card in shown] == [f"run {first.pk}"] * 2 + [None]
    link = shown[0].fact("Failing since").link(f"run {first.pk}")
    assert link.address == f"/p/tools/runs/{first.pk}/"


def test_since_when_is_of_the_same_model(signed_in, version):
    ran(version, model="a")
    ran(version, "export", model="b")
    run = ran(version, "export", model="a")
    (card,) = cards(signed_in().get(ADDRESS, {"open": alert_of(run).pk}))
    (row,) = card.table(f"Regressed scenarios of run {run.pk}").rows
    assert row.cell("Failing since").text == f"run {run.pk}"


def test_it_shows_what_changed_since_the_baseline(signed_in, version):
    guidance = make_guidance(version.suite, "v2")
    ran(version, guidance=guidance, fingerprint={"tool_version": "1.0", "judge": "j", "guidance": "a" * 64})
    run = ran(
        version,
        "export",
        guidance=guidance,
        fingerprint={"tool_version": "2.0", "judge": "j", "guidance": "b" * 64},
    )
    (card,) = cards(signed_in().get(ADDRESS, {"open": alert_of(run).pk}))
    assert [row.texts for row in card.table("What changed").rows] == [
        ["Tool", "1.0 → 2.0"],
        ["Guidance", "v2 aaaaaaaa → v2 bbbbbbbb as text"],
    ]


def test_a_button_moves_a_card_to_its_tab(signed_in, version):
    ran(version)
    run = ran(version, "export")
    client = signed_in("runner")
    states = ("acknowledged", "investigating", "fixed", "wont_fix", "invalid")
    for number, state in enumerate(states, 1):
        response = send(client, run, state=state)
        alert = alert_of(run)
        assert response.url == f"{ADDRESS}?state={state}#alert-{alert.pk}"
        assert (alert.state, alert.triaged) == (state, True)
        assert cards(client.get(ADDRESS)) == [], state
        assert [title(card) for card in cards(client.get(f"{ADDRESS}?state={state}"))] == [f"Run {run.pk}"]
        assert AuditEvent.objects.filter(action="alert.triage").count() == number


def test_who_when_what_and_where_are_kept_and_nothing_else_is_a_decision(signed_in, project, version):
    ran(version)
    run, client = ran(version, "export"), signed_in()
    make_member(project, "author", "grace")
    send(client, run, note="", link="", assignee="")
    assert not alert_of(run).triaged
    assert not AuditEvent.objects.exists()
    given = {"assignee": "grace", "note": "Wrong flag.", "link": "https://bugs.example/1"}
    text = send(client, run, HTMX, **given).content.decode()
    alert = alert_of(run)
    assert alert.assignee.username == "grace"
    assert (alert.note, alert.link, alert.state) == ("Wrong flag.", "https://bugs.example/1", "untriaged")
    assert "<html" not in text and "✓ Saved." in text
    assert len(parse(text).all(".untriaged[hx-swap-oob]")) == 1
    send(client, run, state="fixed")
    assert alert_of(run).note == "Wrong flag.", "what is not sent stays"


def test_it_refuses_what_cannot_be_kept(signed_in, version):
    ran(version)
    run, client = ran(version, "export"), signed_in()
    make_member(make_project("other"), "admin", "stranger")
    for name, value, sentence in (
        ("state", "gone", ""),
        ("link", "javascript:alert(1)", "Enter a full URL"),
        ("link", "ftp://x.example/", "Enter a URL that starts with https://"),
        ("assignee", "stranger", "This person is not a member of the project."),
    ):
        response = send(client, run, HTMX, **{name: value})
        assert response.status_code == 422, value
        assert sentence in response.content.decode()
        assert not alert_of(run).triaged, value


def test_viewers_read_and_do_not_decide(signed_in, version):
    ran(version)
    run = ran(version, "export")
    client = signed_in("viewer")
    assert "Acknowledge" not in parse(client.get(ADDRESS)).buttons
    assert send(client, run, state="fixed").status_code == 403


def test_another_projects_alert_is_not_found(signed_in):
    other = make_suite(make_project("other"), ("create", "export"))
    ran(other)
    run = ran(other, "export")
    assert send(signed_in(), run, state="fixed").status_code == 404


def test_the_navigation_counts_what_waits_to_a_hundred(signed_in, version):
    ran(version)
    run, client = ran(version, "export"), signed_in()
    for more, shown in ((0, "1"), (98, "99"), (1, "99+"), (1, "99+")):
        later = [copy(run) for _ in range(more)]
        for each in later:
            each.pk = None
        made = Run.objects.bulk_create(later)
        Alert.objects.bulk_create(Alert(project=run.project, run=each) for each in made)
        assert f"Regressions {shown} untriaged" in parse(client.get("/p/tools/suites/")).links


def test_it_pages_by_key(signed_in, version):
    before = ran(version)
    given = {"options": {"baseline": str(before.pk)}}
    runs = [ran(version, "export", branch=f"fix-{n}", **given) for n in range(11)]
    client = signed_in()
    first = client.get(ADDRESS)
    assert [title(card) for card in cards(first)] == [f"Run {run.pk}" for run in runs[:0:-1]]
    older = client.get(ADDRESS + parse(first).link("Older ›").address)
    assert [title(card) for card in cards(older)] == [f"Run {runs[0].pk}"]


def test_it_makes_as_many_queries_for_many_alerts(signed_in, version, django_assert_max_num_queries):
    before = ran(version)
    for n in range(4):
        ran(version, "export", options={"baseline": str(before.pk)}, branch=f"fix-{n}")
    client = signed_in()
    # Session, user, access, counts, members, alerts, changes, trials, the menu's projects, the navigation's count.
    with django_assert_max_num_queries(10):
        client.get(ADDRESS)


def test_hostile_notes_and_names_are_escaped(signed_in, project):
    version = make_suite(project, ("create", "export"), name="<b>x</b>")
    ran(version)
    run = ran(version, "export")
    Alert.objects.update(note="<script>alert(1)</script>")
    page = parse(signed_in().get(ADDRESS, {"open": alert_of(run).pk}))
    assert f"Run {run.pk} <b>x</b> on" in page
    assert page.field("Note").value.strip() == "<script>alert(1)</script>"
