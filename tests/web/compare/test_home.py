"""A project's home: whether a line got worse, what runs, what it costs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Alert, Run, TargetCheck
from scenarios.models import SESSIONS, Suite
from tests.builders import make_guidance, make_project, make_run, make_suite, make_target, make_trial
from tests.web.results.runs.pages import tried
from tests.web.screen import parse

ADDRESS = "/p/tools/"


def lost(version, **changes):
    """Return the alert of a run that lost a scenario."""
    tried(version, "pass", "pass", trials=6, **changes)
    return Alert.objects.get(run=tried(version, "pass", "fail", trials=6, **changes))


def home(client):
    return parse(client.get(ADDRESS))


def title(page):
    return page.all("h1")[0].text


def aged(run, **ago):
    at = timezone.now() - timedelta(**ago)
    Run.objects.filter(pk=run.pk).update(created=at, finished=at)


def test_an_empty_project_shows_how_to_begin(signed_in):
    text = home(signed_in("author"))
    assert {
        "Upload scenario files…",
        "Upload a skill folder…",
        "Write a suite…",
        "Import people's sessions…",
    } <= set(text.links)
    viewer = home(signed_in("viewer"))
    assert "No runs yet" in viewer and "Upload scenario files…" not in viewer.links


def test_a_regressed_line_has_a_card_with_what_broke(signed_in, version):
    alert = lost(version)
    page = home(signed_in())
    assert title(page) == "The only line is worse"
    card = page.region("Basics on local")
    row = card.table("Basics on local").row("export")
    assert "6 failed" in str(row.cell("Now").all("[role=img]")[0]["aria-label"])
    assert card.links["See what broke"] == f"/p/tools/runs/{alert.run_id}/"
    assert card.links["Decide…"] == f"/p/tools/regressions/?state=untriaged#alert-{alert.pk}"
    assert "1 untriaged regression" in page.links
    # A decided one has nothing to decide.
    Alert.objects.update(state="wont_fix")
    page = home(signed_in())
    assert "Decide…" not in page.links and "1 untriaged regression" not in page.links
    assert title(page) == "The only line is worse"


def test_lines_that_could_show_no_change_are_not_called_as_before(signed_in, version):
    tried(version, "pass", "pass")
    tried(version, "pass", "pass")
    page = home(signed_in())
    assert title(page) == "No line is known to be worse"
    assert "One undecided." in page


def test_each_target_and_model_is_a_line_and_other_branches_are_none(signed_in, project, version):
    for model in ("small", "large"):
        tried(version, "pass", "pass", model=model)
    tried(version, "pass", "pass", target=make_target(project, "other"))
    tried(version, "pass", "pass", model="branched", branch="feature")
    tried(version, "pass", "pass", model="tried", is_experiment=True)
    page = home(signed_in())
    assert "Three new." in page
    assert "All 3 lines as a table" in page


def test_the_gravest_come_first_and_idle_lines_last(signed_in, project, version):
    tried(version, "pass", "pass", target=make_target(project, "plain"))
    lost(version, target=make_target(project, "broken"))
    make_run(version, target=make_target(project, "away"), error="No executable on PATH.", outcome="error")
    aged(tried(version, "pass", "pass", target=make_target(project, "idle")), days=31)
    page = home(signed_in())
    names = [row.cell("Target").text for row in page.table("Lines").rows]
    assert names == ["broken", "away", "plain"]
    assert "1 line not run for 30 days." in page


def test_what_waits_is_counted(signed_in, project, version):
    target = make_target(project, "gemini")
    for available in (True, False, None):
        TargetCheck.objects.create(target=target, at=timezone.now(), available=available)
    tried(version, "pass", "pass", fingerprint={"staleness": {"stale": True}})
    links = home(signed_in()).links
    assert links["1 target cannot start"] == "/p/tools/targets/"
    assert links["1 suite outdated for the tool"] == "/p/tools/suites/"
    TargetCheck.objects.create(target=target, at=timezone.now(), available=True)
    assert "1 target cannot start" not in home(signed_in()).links


def test_other_projects_have_their_own(signed_in):
    lost(make_suite(make_project("other"), name="Secret"))
    page = home(signed_in())
    assert "Secret" not in page and "No runs yet" in page


def test_names_are_shown_as_they_are_written(signed_in, project):
    version = make_suite(project)
    Suite.objects.update(name="<b>x</b>\u202eexe")
    lost(version, target=make_target(project, "<i>t</i>"))
    assert "<b>x</b>⟨U+202E⟩exe on <i>t</i>" in home(signed_in())


def test_it_says_what_seven_days_cost_and_what_nobody_knows_is_not_zero(signed_in, version):
    for days, cost in ((0, 1.5), (3, 2.0), (8, 40.0)):
        aged(tried(version, "pass", "pass"), days=days)
        Run.objects.filter(pk=Run.objects.latest("pk").pk).update(cost_usd=cost)
    client = signed_in()
    assert "7 days $3.50" in home(client)
    Run.objects.update(cost_usd=None)
    assert "7 days not measured" in home(client)
    Run.objects.update(cost_usd=0)
    assert "7 days $0.00" in home(client)


def test_peoples_sessions_are_no_line(signed_in, version):
    tried(version, "pass", "pass")
    Suite.objects.update(format=SESSIONS)
    page = home(signed_in())
    assert "Basics" not in page


def test_it_shows_how_far_open_runs_are(signed_in, version):
    run = make_run(version, state="running")
    for _ in range(3):
        make_trial(run, outcome="")
    page = home(signed_in())
    assert f"Run {run.pk} 0 of 3 trials" in page


@pytest.mark.parametrize(("role", "shown"), [("viewer", False), ("author", True)])
def test_only_who_may_is_offered_a_run(signed_in, version, role, shown):
    tried(version, "pass", "pass")
    assert ("New run…" in home(signed_in(role)).links) == shown


def test_many_alerts_and_open_runs_take_sixteen_queries(
    signed_in, project, version, django_assert_max_num_queries
):
    for number in range(6):
        lost(version, target=make_target(project, f"t{number}"))
        make_trial(make_run(version, state="running"), outcome="")
    client = signed_in()
    # Session, access, what runs, recent runs, newest runs, measures, changes, runs, alerts, digests, first runs,
    # lifts, the untriaged, events, targets, costs.
    with django_assert_max_num_queries(16):
        client.get(ADDRESS)


def improved(version, **changes):
    """Return a run whose guidance turned every scenario from red to green, beside one with the old guidance."""
    old, new = (make_guidance(version.suite, name) for name in ("poor", "good"))
    for guidance, text in ((old, "Retry.\n"), (new, "Read the error.\n")):
        guidance.files = [{"path": "AGENTS.md", "content": text}]
        guidance.save()
    tried(version, "fail", "fail", trials=6, guidance=old, tool_version="1")
    return tried(version, "pass", "pass", trials=6, guidance=new, tool_version="1", **changes)


def test_guidance_that_improved_has_the_first_card(signed_in, version):
    run = improved(version)
    page = home(signed_in())
    assert "Changed lately" in page.headings
    card = page.region("AGENTS.md good on Basics")
    assert "+100 points" in card
    strips = [each["aria-label"] for each in card.all("[role=img]")]
    assert strips[:2] == ["6 failed", "6 passed"]
    assert "− Retry." in card and "+ Read the error." in card
    address = f"/p/tools/guidance/{run.baseline.guidance_id}/against/{run.guidance_id}/"
    assert card.links["See the comparison"] == address
    assert "Improved" in parse(signed_in().get(address)).region("Verdict")


def test_what_regressed_comes_before_guidance_that_improved(signed_in, version, project):
    improved(make_suite(project, ("create", "export"), name="Second"))
    lost(version)
    page = home(signed_in())
    names = [str(each["aria-label"]) for each in page.all("article")]
    assert names == ["Basics on local", "AGENTS.md good on Second"]


def test_another_tool_is_not_guidance_that_improved(signed_in, version):
    Run.objects.filter(pk=improved(version).pk).update(tool_version="2")
    assert "AGENTS.md good" not in home(signed_in())


def test_a_line_that_improved_has_a_card_where_nothing_is_worse(signed_in, version):
    tried(version, "fail", "fail", trials=6)
    run = tried(version, "pass", "pass", trials=6)
    card = home(signed_in()).region("Basics on local")
    assert card.links["See what improved"] == f"/p/tools/runs/{run.pk}/"
    assert (
        card.table("Basics on local").row("create").cell("Now").all("[role=img]")[0]["aria-label"]
        == "6 passed"
    )


def test_where_nothing_is_worse_it_says_when_the_last_change_was_found(signed_in, version):
    tried(version, "fail", "fail", trials=6)
    assert "The last change was found" not in home(signed_in())
    changed = tried(version, "pass", "pass", trials=6)
    assert "The last change was found today." in home(signed_in())
    aged(changed, days=3)
    day = (timezone.now() - timedelta(days=3)).strftime("%A")
    assert f"The last change was found on {day}." in home(signed_in())


def test_home_with_improved_guidance_has_few_queries(signed_in, version, django_assert_max_num_queries):
    improved(version)
    client = signed_in()
    client.get(ADDRESS)
    with django_assert_max_num_queries(24):
        client.get(ADDRESS)
