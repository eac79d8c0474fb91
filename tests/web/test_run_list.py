"""The runs page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runs.comparing import compare_with_baseline
from runs.models import Measure
from runs.models.comparison import Change
from tests.builders import close, make_guidance, make_project, make_run, make_suite, make_target, make_trial

ADDRESS = "/p/tools/runs/"


@pytest.fixture
def version(project):
    return make_suite(project, name="Basics")


def numbers(response):
    """Return the runs on a page, in its order."""
    return [row.run.pk for row in response.context["rows"]]


def test_it_works(signed_in, version):
    run = make_run(version, tool_version="taskmgr 2.4.0", tags=["nightly"])
    make_trial(run, outcome="pass")
    make_trial(run, outcome="fail")
    text = signed_in().get(ADDRESS).content.decode()
    assert "taskmgr 2.4.0" in text
    assert '50.0%<span class="of">1/2</span>' in text
    assert 'badge is-failed">failed' in text


def test_it_tells_what_to_do_without_any_run(signed_in):
    text = signed_in().get(ADDRESS).content.decode()
    assert "No runs yet" in text
    assert "/p/tools/runs/new/" in text


def test_it_says_which_filter_leaves_nothing(signed_in, version):
    make_run(version)
    text = signed_in().get(f"{ADDRESS}?tag=release").content.decode()
    assert "Nothing matches" in text
    assert "tag <b>release</b>" in text


@pytest.mark.parametrize(
    "query",
    [
        "q=second",
        "suite=second",
        "target=codex",
        "model=gpt-5",
        "tag=nightly",
        "state=fail",
        "q=2.4.0",
        "q={pk}",
        "guidance={g}",
    ],
)
def test_it_filters_by(signed_in, project, version, query):
    make_run(version, tags=["nightly-x"])
    other = make_suite(project, name="Second")
    guidance = make_guidance(other.suite)
    changes = {
        "model": "gpt-5",
        "tool_version": "2.4.0",
        "tags": ["nightly"],
        "outcome": "fail",
        "guidance": guidance,
    }
    wanted = make_run(other, target=make_target(project, "codex"), **changes)
    response = signed_in().get(f"{ADDRESS}?{query.format(pk=wanted.pk, g=guidance.pk)}")
    assert numbers(response) == [wanted.pk]


def made(version, day, **changes):
    run = make_run(version, **changes)
    run.created = datetime(2026, 11, day, tzinfo=UTC)
    run.save()
    return run.pk


def test_it_filters_by_the_first_day(signed_in, version):
    made(version, 8)
    wanted = [made(version, 10), made(version, 9)]
    response = signed_in().get(f"{ADDRESS}?since=2026-11-09")
    assert numbers(response) == sorted(wanted, reverse=True)
    assert "since <b>9 Nov 2026</b>" in response.content.decode()


@pytest.mark.parametrize("since", ["soon", "2026-13-01", "0", "<b>"])
def test_a_day_that_is_none_is_no_filter(signed_in, version, since):
    run = make_run(version)
    response = signed_in().get(ADDRESS, {"since": since})
    assert numbers(response) == [run.pk]
    assert "Clear the filters" not in response.content.decode()


def test_a_filter_in_force_can_be_removed_alone(signed_in, version):
    make_run(version, tags=["a&b"])
    text = signed_in().get(ADDRESS, {"suite": "basics", "tag": "a&b"}).content.decode()
    assert (
        'suite <b>Basics</b> <a href="/p/tools/runs/?tag=a%26b" aria-label="Remove the filter suite">' in text
    )
    assert '<a href="/p/tools/runs/?suite=basics" aria-label="Remove the filter tag">' in text


def test_it_says_which_filter_to_drop(signed_in, version):
    make_run(version, outcome="fail", tags=["nightly"])
    query = "tag=release&state=fail"
    text = signed_in().get(f"{ADDRESS}?{query}").content.decode()
    assert "No run has tag <b>release</b>, state <b>failed</b>. Without tag there is 1 run." in text
    assert '<a class="button" href="/p/tools/runs/?state=fail">Remove tag</a>' in text
    assert "Without state" not in text


def test_it_finds_runs_that_are_not_over(signed_in, version):
    make_run(version)
    queued = make_run(version, state="queued")
    assert numbers(signed_in().get(f"{ADDRESS}?state=open")) == [queued.pk]


def test_it_shows_only_this_project(signed_in, version):
    own = make_run(version)
    make_run(make_suite(make_project("other")))
    assert numbers(signed_in().get(ADDRESS)) == [own.pk]


def test_it_pages_by_key(signed_in, version):
    runs = [make_run(version).pk for _ in range(52)]
    client = signed_in()
    first = client.get(f"{ADDRESS}?suite=basics")
    assert numbers(first) == runs[:1:-1]
    older = first.context["older"]
    assert older == f"suite=basics&before={runs[2]}"
    assert numbers(client.get(f"{ADDRESS}?{older}")) == runs[1::-1]


@pytest.mark.parametrize("before", ["x", "-1", "9" * 40, "1e3", "٣"])
def test_it_takes_a_key_that_is_none_for_the_first_page(signed_in, version, before):
    run = make_run(version)
    assert numbers(signed_in().get(f"{ADDRESS}?before={before}")) == [run.pk]


def test_it_answers_htmx_with_the_results_alone(signed_in, version):
    make_run(version)
    text = signed_in().get(ADDRESS, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "<table" in text


def test_a_page_from_history_is_whole(signed_in, version):
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<html" in signed_in().get(ADDRESS, headers=headers).content.decode()


def test_it_escapes_names_and_shows_what_is_hidden_in_them(signed_in, project):
    make_run(make_suite(project, name="<b>x</b>\u202eexe"))
    text = signed_in().get(ADDRESS).content.decode()
    assert "&lt;b&gt;x&lt;/b&gt;⟨U+202E⟩exe" in text
    assert "<b>x</b>" not in text


def test_a_run_that_lost_a_scenario_says_how_much_that_is(signed_in, version):
    for outcome in ("pass", "fail"):
        run = make_run(version)
        make_trial(run, "create", outcome=outcome)
        make_trial(run, "export")
        compare_with_baseline(close(run))
    newest, oldest = signed_in().get(ADDRESS).context["rows"]
    assert (newest.state, newest.change, newest.direction) == ("regressed", -0.5, "worse")
    assert (oldest.state, oldest.change) == ("pass", None)


def test_it_shows_a_verdict_against_the_baseline(signed_in, version):
    before, run = make_run(version), make_run(version)
    measure = Measure.objects.create(layer="trial", name="pass")
    values = {"before": 0.9, "after": 0.65}
    Change.objects.create(run=run, baseline=before, measure=measure, verdict="regressed", **values)
    text = signed_in().get(ADDRESS).content.decode()
    assert "▼ 25.0 pts" in text
    assert "is-regressed" in text


def tried(version, *outcomes, **changes):
    """Return a run whose scenarios went like this, held against its baseline."""
    run = make_run(version, **changes)
    for key, outcome in zip(("create", "export"), outcomes, strict=True):
        make_trial(run, key, outcome=outcome)
    compare_with_baseline(close(run))
    return run


def test_three_figures_stand_above_the_rows(signed_in, version):
    first = tried(version, "pass", "pass", cost_usd=0.4)
    last = tried(version, "pass", "fail", cost_usd=0.6)
    response = signed_in().get(ADDRESS)
    figures, text = response.context["figures"], response.content.decode()
    assert [(each.title, each.now) for each in figures.drawn] == [
        ("Pass rate", "50.0%"),
        ("First-try success", "0.50"),
        ("Cost per passed trial", "$0.600"),
    ]
    assert (figures.runs, figures.baseline) == (2, first.pk)
    assert text.count('class="baseline"') == 3
    assert f"Run {last.pk}, " in text
    assert "50%, 95 % interval 9% to 91%, regressed</title>" in text
    assert "style=" not in text


def test_runs_that_say_nothing_are_not_drawn(signed_in, version):
    make_run(version, state="queued")
    make_trial(make_run(version, cancelled=1), outcome="error")
    tried(version, "pass", "pass")
    assert signed_in().get(ADDRESS).context["figures"] is None


def test_the_figures_follow_the_filters_and_hold_twenty_runs(signed_in, project, version):
    other = make_suite(project, name="Second")
    for number in range(23):
        tried(other if number % 8 == 0 else version, "pass", "pass")
    drawn = signed_in().get(f"{ADDRESS}?suite=second").context["figures"]
    assert (drawn.runs, signed_in().get(ADDRESS).context["figures"].runs) == (3, 20)


def test_runs_of_several_suites_have_no_common_baseline(signed_in, project, version):
    for each in (version, version, make_suite(project, name="Second")):
        tried(each, "pass", "pass")
    response = signed_in().get(ADDRESS)
    assert response.context["figures"].baseline is None
    assert 'class="baseline"' not in response.content.decode()


def test_what_was_not_measured_is_said_in_place_of_a_figure(signed_in, version):
    for _ in range(2):
        tried(version, "pass", "pass", cost_usd=None)
    text = signed_in().get(ADDRESS).content.decode()
    assert text.count("Not measured in these runs.") == 1


def test_older_pages_have_rows_only(signed_in, version):
    for _ in range(52):
        tried(version, "pass", "pass")
    client = signed_in()
    older = client.get(ADDRESS).context["older"]
    assert client.get(f"{ADDRESS}?{older}").context["figures"] is None


def test_it_makes_as_many_queries_for_fifty_runs_as_for_one(
    signed_in, version, django_assert_max_num_queries
):
    for _ in range(5):
        tried(version, "pass", "pass")
    client = signed_in()
    # Session, user, access, page, measures, changes, four for the choices, the menu's projects, the untriaged.
    with django_assert_max_num_queries(11):
        client.get(ADDRESS)
