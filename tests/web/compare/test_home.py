"""A project's home."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from runs.compare.home_page.attention import MOST_ALERTS
from runs.models import Alert, Run, TargetCheck
from scenarios.models import Suite
from tests.builders import make_project, make_run, make_suite, make_target, make_trial
from tests.web.results.runs.pages import tried
from tests.web.screen import parse

ADDRESS = "/p/tools/"


def lost(version, **changes):
    """Return the alert of a run that lost a scenario."""
    tried(version, "pass", "pass", trials=6, **changes)
    return Alert.objects.get(run=tried(version, "pass", "fail", trials=6, **changes))


def attention(client):
    return [(each.state, each.title) for each in client.get(ADDRESS).context["summary"].attention]


def aged(run, **ago):
    at = timezone.now() - timedelta(**ago)
    Run.objects.filter(pk=run.pk).update(created=at, finished=at)


def test_an_empty_project_needs_no_attention(signed_in):
    text = parse(signed_in().get(ADDRESS))
    assert "All clear: the latest run of every suite passed." in text
    assert "No runs yet" in text


def test_an_untriaged_regression_has_one_row_with_a_link(signed_in, version):
    alert = lost(version)
    client = signed_in()
    assert attention(client) == [("regressed", "Basics on local: 1 scenario passes less often")]
    page = parse(client.get(ADDRESS))
    assert (
        f"/p/tools/regressions/?state=untriaged#alert-{alert.pk}" in page.table("Needs attention").addresses
    )
    assert "Untriaged, unassigned" in page
    assert "! 1 untriaged" in page


def test_a_settled_regression_leaves_the_run_that_failed(signed_in, version):
    alert = lost(version)
    Alert.objects.update(state="wont_fix")
    (row,) = signed_in().get(ADDRESS).context["summary"].attention
    assert (row.page, row.key, row.detail) == ("run-detail", alert.run_id, "6 of 12 trials passed")


def test_open_regressions_are_counted_alike(signed_in, project, version):
    for number, state in enumerate(("untriaged", "untriaged", "investigating", "fixed")):
        alert = lost(version, target=make_target(project, f"t{number}"))
        Alert.objects.filter(pk=alert.pk).update(state=state)
    client = signed_in()
    home = parse(client.get(ADDRESS))
    assert home.facts["Open regressions"] == "3 ! 2 untriaged"
    assert "Regressions 2 untriaged" in home.links
    tabs = parse(client.get(f"{ADDRESS}regressions/")).region("State")
    assert "Untriaged 2" in tabs and "Investigating 1" in tabs and "Fixed 1" in tabs
    assert len(parse(client.get(f"{ADDRESS}regressions/")).all("article")) == 2


def test_regressions_beyond_those_that_are_read_are_counted(signed_in, project, version):
    for number in range(MOST_ALERTS + 3):
        run = make_run(version)
        state = "investigating" if number == 0 else "untriaged"
        Alert.objects.create(project=project, run=run, state=state)
    home = parse(signed_in().get(ADDRESS))
    assert home.facts["Open regressions"] == f"{MOST_ALERTS + 3} ! {MOST_ALERTS + 2} untriaged"
    assert "Regressions 99+ untriaged" in home.links


def test_many_regressions_are_summed_up(signed_in, project, version):
    for number in range(7):
        lost(version, target=make_target(project, f"t{number}"))
    rows = attention(signed_in())
    assert len(rows) == 4
    assert rows[-1][1] == "4 more untriaged regressions"


def test_what_is_alike_shares_a_line(signed_in, project, version):
    for number in range(6):
        target = make_target(project, f"t{number}")
        lost(version, target=target)
        suite = make_suite(project, name=f"Suite {number}")
        tried(suite, "pass", "pass", fingerprint={"staleness": {"stale": True}})
        aged(tried(make_suite(project, name=f"Idle {number}"), "pass", "pass"), days=16)
        make_run(make_suite(project, name=f"Bad {number}"), outcome="fail")
        TargetCheck.objects.create(target=target, at=timezone.now(), available=False)
    rows = signed_in().get(ADDRESS).context["summary"].attention
    assert [each.title for each in rows[3:]] == [
        "3 more untriaged regressions",
        "6 suites failed",
        "6 targets cannot start",
        "12 suites stale",
    ]
    assert rows[5].detail == "t0 cannot start, t1 cannot start, t2 cannot start and 3 more"
    assert len(rows) <= 8


def test_rows_are_ordered_by_urgency(signed_in, project, version):
    target = make_target(project, "gemini")
    lost(version)
    make_run(version, target=target, error="No executable on PATH.", outcome="error")
    TargetCheck.objects.create(target=target, at=timezone.now(), available=False, sentence="No key is set.")
    stale = make_suite(project, name="Cities")
    tried(stale, "pass", "pass", fingerprint={"staleness": {"stale": True}})
    idle = make_suite(project, name="Notes")
    aged(tried(idle, "pass", "pass"), days=16)
    assert attention(signed_in()) == [
        ("regressed", "Basics on gemini: 1 scenario passes less often"),
        ("error", "Basics on gemini"),
        ("cannot start", "gemini cannot start"),
        ("stale", "Cities on gemini: outdated for its tool"),
        ("stale", "Notes on gemini has not run for 16 days"),
    ]


def test_a_target_that_is_ready_again_needs_no_attention(signed_in, project):
    target = make_target(project)
    for available in (False, True, None):
        TargetCheck.objects.create(target=target, at=timezone.now(), available=available)
    assert attention(signed_in()) == []


def test_other_projects_need_others(signed_in):
    other = make_suite(make_project("other"), name="Secret")
    lost(other)
    TargetCheck.objects.create(target=other.suite.project.targets.get(), at=timezone.now(), available=False)
    assert attention(signed_in()) == []


def test_names_are_shown_as_they_are_written(signed_in, project):
    version = make_suite(project)
    Suite.objects.update(name="<b>x</b>\u202eexe")
    lost(version, target=make_target(project, "<i>t</i>"))
    assert "<b>x</b>⟨U+202E⟩exe on <i>t</i>: 1 scenario" in parse(signed_in().get(ADDRESS))


def test_the_week_is_compared_with_the_one_before(signed_in, version):
    aged(tried(version, "pass", "pass"), days=9)
    aged(tried(version, "fail", "fail"), days=15)
    tried(version, "pass", "fail")
    week = signed_in().get(ADDRESS).context["summary"].week
    assert (week.rate.passed, week.rate.n, week.runs, week.change) == (1, 2, 1, -0.5)
    assert "▼ 50.0 pts" in parse(signed_in().get(ADDRESS))


def test_a_week_without_one_before_has_no_change(signed_in, version):
    tried(version, "pass", "pass")
    assert signed_in().get(ADDRESS).context["summary"].week.change is None


def test_it_shows_the_remaining_trials_of_open_runs(signed_in, version):
    run = make_run(version, state="running")
    for _ in range(3):
        make_trial(run, outcome="")
    assert "3 trials left" in parse(signed_in().get(ADDRESS))


def test_many_alerts_and_open_runs_take_twelve_queries(
    signed_in, project, version, django_assert_max_num_queries
):
    for number in range(6):
        lost(version, target=make_target(project, f"t{number}"))
        make_trial(make_run(version, state="running"), outcome="")
    client = signed_in()
    # Session, access, recent runs, newest runs, measures, changes, alerts, targets, the week, events, what runs,
    # the untriaged.
    with django_assert_max_num_queries(12):
        client.get(ADDRESS)
