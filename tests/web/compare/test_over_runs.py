"""Trends and what judges say, over runs."""

from __future__ import annotations

import pytest

from runs.models import Alert, Change, Measure, Run
from scenarios.models import ScenarioVersion
from tests.builders import close, make_guidance, make_run, make_suite, make_target, make_trial, make_version
from tests.trial_parts import make_judging
from tests.web.screen import parse


def measured_run(version, outcome, **changes):
    run = make_run(version, **changes)
    for key in ("create", "export"):
        make_judging(make_trial(run, key, outcome=outcome))
    return close(run)


def charts(page):
    """Return the names of the points of each chart, by the chart's title."""
    return {
        chart.all("b")[0].text: [point.all("title")[0].text for point in chart.all("svg a")]
        for chart in page.all("figure")
    }


def history(version, *outcomes, **changes):
    return [measured_run(version, outcome, **changes) for outcome in outcomes]


def test_a_trend_is_drawn_oldest_first_with_its_table(signed_in, version):
    runs = history(version, "pass", "fail")
    page = parse(signed_in().get("/p/tools/trends/?suite=basics&measure=trial/pass&values=shown"))
    points = charts(page)["Pass rate"]
    assert [f"Run {run.pk}, " in point for run, point in zip(runs, points, strict=True)] == [True, True]
    assert ": 100 %" in points[0]
    assert ": 0 %" in points[1]
    assert "−100 pts since the run before" in points[1]
    assert page.table("Values").row_names == [str(runs[1].pk), str(runs[0].pk)]


def test_the_overview_has_a_chart_for_each_headline(signed_in, version):
    history(version, "pass", "pass")
    page = parse(signed_in().get("/p/tools/trends/?values=shown"))
    assert list(charts(page))[:4] == ["Pass rate", "Judge score", "First-try success", "Error rate"]
    assert "export" in charts(page)
    assert page.table("Values").rows[0].cell("Error rate").text == "25 %"


def test_a_point_leads_to_its_run(signed_in, version):
    runs = history(version, "pass", "fail")
    (chart,) = parse(signed_in().get("/p/tools/trends/?measure=trial/pass")).all("figure")[:1]
    assert [point["href"] for point in chart.all("svg a")] == [f"../runs/{run.pk}/" for run in runs]


def test_the_large_chart_has_a_figure_to_zoom_into(signed_in, version):
    runs = history(version, "pass", "fail")
    client = signed_in()
    (chart,) = parse(client.get("/p/tools/trends/?measure=trial/pass")).all("[data-figure]")
    figure = client.get(f"/p/tools/trends/{chart['data-figure']}").json()
    line = figure["data"][-1]
    assert (line["x"], line["y"], len(figure["layout"]["meta"])) == ([0, 1], [1.0, 0.0], len(runs))


def test_a_pass_rate_is_shown_in_percent(signed_in, version):
    history(version, "pass", "fail")
    table = parse(signed_in().get("/p/tools/trends/?measure=trial/pass&values=shown")).table("Values")
    assert [row.cell("Pass rate").text for row in table.rows] == ["0 %", "100 %"]


def test_measures_are_offered_by_the_names_of_their_charts(signed_in, version):
    measured_run(version, "pass")
    field = parse(signed_in().get("/p/tools/trends/?measure=trial/pass")).field("Measure")
    assert (field.value, field.choices["trial/pass"]) == ("trial/pass", "Trial: Pass rate")
    assert field.choices["interaction/first_try_success_rate"] == "Interaction: First-try success"


def test_new_versions_of_tool_and_guidance_are_marked_once(signed_in, version):
    measured_run(version, "pass", tool_version="1.0", guidance=make_guidance(version.suite, "v1"))
    measured_run(version, "fail", tool_version="2.0", guidance=make_guidance(version.suite, "v2"))
    page = parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))
    assert page.all("figure")[0].count("tool 2.0, v2") == 1


def test_names_cannot_leave_the_figure(signed_in, version):
    measured_run(version, "pass", tool_version="1.0")
    measured_run(version, "pass", tool_version="</svg><b>2.0</b>")
    text = signed_in().get("/p/tools/trends/").content.decode()
    assert "</svg><b>" not in text
    assert "&lt;/svg&gt;&lt;b&gt;2.0" in text


def test_a_regressed_run_names_its_alert_on_its_point(signed_in, version):
    runs = history(version, "pass", "fail")
    Run.objects.filter(pk=runs[1].pk).update(verdict="regressed")
    Alert.objects.create(project=runs[1].project, run=runs[1])
    page = parse(signed_in().get("/p/tools/trends/?measure=trial/pass&values=shown"))
    assert ["regressed, alert untriaged" in point for point in charts(page)["Pass rate"]] == [False, True]
    assert "regressed" in page.table("Values").rows[0].text


def test_only_the_measure_that_regressed_is_marked(signed_in, version):
    runs = history(version, "pass", "fail")
    Run.objects.filter(pk=runs[1].pk).update(verdict="regressed")
    for measure in Measure.objects.filter(layer="trial", name__in=("pass", "seconds")):
        verdict = "regressed" if measure.name == "pass" else "no_evidence"
        Change.objects.create(run=runs[1], baseline=runs[0], measure=measure, verdict=verdict)
    drawn = parse(signed_in().get("/p/tools/trends/")).all("figure")
    marked = [len(figure.all("svg .dot.is-regressed")) for figure in drawn]
    assert sum(marked) == 1
    assert marked[0] == 1


def test_a_pass_rate_whose_scenarios_broke_is_marked(signed_in, version):
    runs = history(version, "pass", "fail")
    Run.objects.filter(pk=runs[1].pk).update(verdict="regressed")
    (rate,) = Measure.objects.filter(layer="trial", name="pass")
    Change.objects.create(
        run=runs[1], baseline=runs[0], measure=rate, verdict="no_evidence", detail={"broke": ["create"]}
    )
    page = parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))
    assert len(page.all("svg .dot.is-regressed")) == 1


def test_the_baseline_of_the_newest_run_is_drawn(signed_in, version):
    first, _ = history(version, "pass", "fail")
    Run.objects.exclude(pk=first.pk).update(baseline=first)
    page = parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))
    assert "Baseline 100 %" in page.all("figure")[0]
    assert page.link(f"run {first.pk}").address.endswith(f"/runs/{first.pk}/")


CHANGED = "Changed at run"


def test_a_drop_over_many_runs_is_a_change_point(signed_in, version):
    runs = history(version, *["pass"] * 6, *["fail"] * 5)
    page = parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))
    assert f"{CHANGED} {runs[6].pk} from 100 % to 0 % (−100 pts)" in page


def test_fewer_than_six_runs_say_that_they_have_no_change_points(signed_in, version):
    history(version, "pass", "pass", "pass", "fail", "fail")
    page = parse(signed_in().get("/p/tools/trends/"))
    assert CHANGED not in page
    assert "need at least 6 finished runs on the main branch, without experiments; 5 so far." in page


def test_experiments_and_branches_make_no_change_point(signed_in, version):
    for changes in ({"is_experiment": True}, {"branch": "feature"}):
        Run.objects.all().delete()
        history(version, *["pass"] * 6)
        history(version, *["fail"] * 5, **changes)
        assert CHANGED not in parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))


def test_a_step_with_a_changed_task_is_no_change_point(signed_in, version):
    history(version, *["pass"] * 6)
    history(make_version(version.suite, create={"prompt": "New."}, export={}), *["fail"] * 6)
    assert CHANGED not in parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))


JUDGED = {"fingerprint": {"judge": "strict", "judge_sha256": "1" * 64}}


def test_a_step_without_judges_is_no_change_point(signed_in, version):
    history(version, *["pass"] * 6, options={"judge": False})
    history(version, *["fail"] * 6, **JUDGED)
    assert CHANGED in parse(signed_in().get("/p/tools/trends/?measure=trial/pass")), "nothing is judged"
    ScenarioVersion.objects.filter(scenario__key="export").update(judge_hash="j")
    history(version, "pass", options={"judge": False})
    response = signed_in().get("/p/tools/trends/?measure=trial/pass")
    assert CHANGED not in parse(response)
    assert "judge strict" in response.text and "no judge" in response.text


def test_a_step_with_an_unchanged_task_is_a_change_point_but_none_with_another_time_limit(signed_in, version):
    history(version, *["pass"] * 6)
    unchanged = make_version(version.suite, create={}, export={})
    history(unchanged, *["fail"] * 6, options={"timeout_seconds": 20})
    assert CHANGED not in parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))
    Run.objects.filter(options={}).update(options={"timeout_seconds": 20})
    assert CHANGED in parse(signed_in().get("/p/tools/trends/?measure=trial/pass"))


def large_chart(client):
    return parse(client.get("/p/tools/trends/?measure=trial/pass")).all("figure")[0]


def test_a_step_with_another_threshold_is_no_change_point(signed_in, project):
    criteria = {"gates": [], "evaluators": [{"type": "code_judge", "name": "s", "script": "check.py"}]}
    version = make_suite(project, ("create", "export"), name="Basics", criteria=criteria)
    history(version, *["pass"] * 6, options={"threshold": 0.4})
    history(version, *["fail"] * 6, options={"threshold": 0.9})
    assert CHANGED not in large_chart(signed_in())
    Run.objects.update(options={"threshold": 0.4})
    assert CHANGED in large_chart(signed_in())


def test_a_trend_opens_with_the_target_of_the_newest_run(signed_in, version):
    history(version, "pass")
    newest = measured_run(version, "pass", target=make_target(version.suite.project, "gemini"))
    page = parse(signed_in().get("/p/tools/trends/?values=shown"))
    assert page.field("Target").value == "gemini"
    assert page.table("Values").row_names == [str(newest.pk)]
    everything = parse(signed_in().get("/p/tools/trends/?target=&values=shown"))
    assert len(everything.table("Values").rows) == 2


@pytest.mark.parametrize("name", ["model", "tool_version", "branch"])
def test_a_trend_is_filtered(signed_in, version, name):
    history(version, "pass", **{name: "old"})
    run = measured_run(version, "pass", **{name: "new"})
    page = parse(signed_in().get(f"/p/tools/trends/?target=&{name}=new&values=shown"))
    assert page.table("Values").row_names == [str(run.pk)]


def test_filters_that_match_no_run_can_be_cleared(signed_in, version):
    measured_run(version, "pass")
    page = parse(signed_in().get("/p/tools/trends/?model=nothing"))
    assert "matches these filters" in page
    assert page.link("Clear filters").address == "?suite=basics"


def test_trends_of_changed_suites_take_at_most_fourteen_queries(
    signed_in, version, django_assert_max_num_queries
):
    history(version, *["pass"] * 4, tool_version="1")
    history(make_version(version.suite, create={}, export={}), *["pass"] * 4, tool_version="1")
    client = signed_in()
    with django_assert_max_num_queries(14):
        client.get("/p/tools/trends/?tool_version=1")


def test_a_suite_without_runs_has_no_trend(signed_in, version):
    assert "No data yet" in parse(signed_in().get("/p/tools/trends/"))


def test_without_suites_both_pages_say_how_to_upload_one(signed_in):
    client = signed_in()
    for page in ("trends", "reviews"):
        assert "No suites yet" in parse(client.get(f"/p/tools/{page}/"))


def test_htmx_gets_the_trend_alone(signed_in, version):
    measured_run(version, "pass")
    client = signed_in()
    text = client.get("/p/tools/trends/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert parse(text).field("Measure").choices


def test_statements_are_counted_by_guidance(signed_in, version):
    for name, issue in (("v1", "Guessed a flag."), ("v2", "Guessed a flag"), ("v2", "guessed a flag.")):
        run = make_run(version, guidance=None)
        run.guidance = version.suite.guidance.filter(name=name).first() or make_guidance(version.suite, name)
        run.save()
        make_judging(make_trial(run), content={"negatives": [issue], "positives": []})
    readings = parse(signed_in().get("/p/tools/reviews/rationales/")).all(".columns > section")
    counted = [(each.headings[0], [count.text for count in each.all(".after > span")]) for each in readings]
    assert counted == [
        ("unknown tool version · v2", ["2 of 2 judgings"]),
        ("unknown tool version · v1", ["1 of 1 judgings"]),
    ]


def test_judgings_that_do_not_count_are_left_out(signed_in, version):
    make_judging(make_trial(make_run(version)), counts=False)
    assert "These runs had no judge." in parse(signed_in().get("/p/tools/reviews/rationales/"))


def opened(client, page):
    return parse(client.get(f"/p/tools/{page}/")).field("Suite").value


def test_both_pages_open_with_the_suite_that_was_run_last(signed_in, version):
    other = make_suite(version.suite.project, ["create"], name="zebra")
    measured_run(version, "pass")
    close(make_run(other))
    assert (opened(signed_in(), "trends"), opened(signed_in(), "reviews/rationales")) == ("zebra", "basics")
    measured = make_run(other)
    make_judging(make_trial(measured, "create"))
    close(measured)
    assert opened(signed_in(), "reviews/rationales") == "zebra"


def test_without_judgments_reviews_open_with_the_newest_run(signed_in, version):
    close(make_run(make_suite(version.suite.project, ["create"], name="zebra")))
    assert opened(signed_in(), "reviews/rationales") == "zebra"
