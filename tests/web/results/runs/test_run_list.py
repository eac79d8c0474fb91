"""The runs page: its rows, in parts, and what they say."""

from __future__ import annotations

from runs.compare.baselines import set_baseline
from runs.models import Measure
from runs.models.comparison import Change
from tests.builders import make_guidance, make_project, make_run, make_suite, make_trial
from tests.web.results.runs.pages import ADDRESS, numbers, tried
from tests.web.screen import parse


def test_it_works(signed_in, version):
    run = make_run(version, tool_version="taskmgr 2.4.0", tags=["nightly"])
    make_trial(run, outcome="pass")
    make_trial(run, outcome="fail")
    (row,) = parse(signed_in().get(ADDRESS)).table("Runs").rows
    assert "taskmgr 2.4.0" in row.cell("Tool, guidance")
    assert row.cell("Passed").text == "50 % 1/2"
    assert row.cell("State").badges == ["new line"]


def test_an_empty_list_says_how_to_start_a_run(signed_in):
    text = parse(signed_in().get(ADDRESS))
    assert "No runs yet" in text
    assert text.link("New run…").address == "/p/tools/runs/new/"


def test_it_shows_only_this_project(signed_in, version):
    own = make_run(version)
    make_run(make_suite(make_project("other")))
    assert numbers(signed_in().get(ADDRESS)) == [own.pk]


def test_it_pages_by_key(signed_in, version):
    runs = [make_run(version).pk for _ in range(52)]
    client = signed_in()
    first = client.get(f"{ADDRESS}?suite=basics")
    assert numbers(first) == runs[:1:-1]
    older = parse(first).link("Older ›").address
    assert older == f"?suite=basics&before={runs[2]}"
    assert numbers(client.get(ADDRESS + older)) == runs[1::-1]


def test_an_invalid_key_shows_the_first_page(signed_in, version):
    run, client = make_run(version), signed_in()
    for before in ("x", "-1", "9" * 40, "1e3", "٣"):
        assert numbers(client.get(f"{ADDRESS}?before={before}")) == [run.pk], before


def test_it_answers_htmx_with_the_results_alone(signed_in, version):
    make_run(version)
    text = signed_in().get(ADDRESS, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert parse(text).tables == ["Runs"]


def test_a_page_from_history_is_whole(signed_in, version):
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<html" in signed_in().get(ADDRESS, headers=headers).content.decode()


def test_it_escapes_names_and_shows_what_is_hidden_in_them(signed_in, project):
    make_run(make_suite(project, name="<b>x</b>\u202eexe"))
    assert "<b>x</b>⟨U+202E⟩exe" in parse(signed_in().get(ADDRESS)).table("Runs")


def test_a_regressed_run_says_so_once_and_by_how_much(signed_in, version):
    for outcome in ("pass", "fail"):
        tried(version, outcome, "pass", trials=6)
    newest, oldest = parse(signed_in().get(ADDRESS)).table("Runs").rows
    assert (newest.cell("State").text, newest.cell("Verdict").text) == ("regressed", "▼ 50 pts")
    (change,) = newest.cell("Verdict").all(".sub")
    assert (change.text, change.classes) == ("▼ 50 pts", {"sub", "worse"})
    assert (oldest.cell("State").text, oldest.cell("Verdict").text) == ("new line", "–")


def test_a_flip_without_evidence_is_no_verdict(signed_in, version):
    set_baseline(tried(version, "fail", "pass"), by=None)
    tried(version, "pass", "fail")
    newest = parse(signed_in().get(ADDRESS)).table("Runs").rows[0]
    assert (newest.cell("State").text, newest.cell("Verdict").text) == ("undecided", "too little data = 0")
    assert newest.cell("Verdict").all(".sub")[0].classes == {"sub", "muted"}


def test_runs_are_filtered_by_their_verdict(signed_in, version):
    tried(version, "pass", "pass", trials=6)
    lost = tried(version, "fail", "pass", trials=6)
    client = signed_in()
    assert numbers(client.get(f"{ADDRESS}?verdict=regressed")) == [lost.pk]
    assert numbers(client.get(f"{ADDRESS}?verdict=improved")) == []
    assert "Regressed" in parse(client.get(f"{ADDRESS}?verdict=regressed"))


def test_guidance_and_author_are_below_tool_and_start(signed_in, version, django_user_model):
    by = django_user_model.objects.create(username="grace")
    make_run(version, tool_version="taskmgr 2.4.0", guidance=make_guidance(version.suite, "v3"), by=by)
    (row,) = parse(signed_in().get(ADDRESS)).table("Runs").rows
    assert [each.text for each in row.cell("Tool, guidance").all(".sub")] == ["v3"]
    assert [each.text for each in row.cell("Started, by").all(".sub")] == ["grace"]


def test_it_shows_a_verdict_against_the_baseline(signed_in, version):
    before, run = make_run(version), make_run(version, verdict="regressed")
    measure = Measure.objects.create(layer="trial", name="pass")
    values = {"before": 0.9, "after": 0.65}
    Change.objects.create(run=run, baseline=before, measure=measure, verdict="regressed", **values)
    text = parse(signed_in().get(ADDRESS))
    assert "▼ 25 pts" in text
    assert "regressed" in text.badges


def test_it_makes_as_many_queries_for_fifty_runs_as_for_one(
    signed_in, version, django_assert_max_num_queries
):
    for _ in range(5):
        tried(version, "pass", "pass")
    client = signed_in()
    # Session, user, access, page, measures, changes, four for the choices, the menu's projects, the untriaged.
    with django_assert_max_num_queries(11):
        client.get(ADDRESS)
