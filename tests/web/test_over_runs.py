"""Trends and what judges say, over runs."""

from __future__ import annotations

import json

from tests.builders import close, make_guidance, make_run, make_suite, make_trial
from tests.trial_parts import make_judging
from tests.web.html import parse


def measured_run(version, outcome, **changes):
    run = make_run(version, **changes)
    for key in ("create", "export"):
        make_judging(make_trial(run, key, outcome=outcome))
    return close(run)


def figure(text):
    (data,) = parse(text).all("#trend-figure")
    return json.loads(data.node.get_text())


def test_a_trend_is_drawn_oldest_first_with_its_table(signed_in, version):
    runs = [measured_run(version, outcome) for outcome in ("pass", "fail")]
    response = signed_in().get("/p/tools/trends/?suite=basics&measure=trial/pass")
    assert figure(response.content.decode())["data"][-1]["y"] == [1.0, 0.0]
    assert [point.run for point in response.context["newest_first"]] == [runs[1].pk, runs[0].pk]


def test_a_pass_rate_is_shown_in_percent(signed_in, version):
    for outcome in ("pass", "fail"):
        measured_run(version, outcome)
    text = signed_in().get("/p/tools/trends/").content.decode()
    table = parse(text).table("Values")
    assert [row.texts[table.columns.index("Pass rate")] for row in table.rows] == ["0 %", "100 %"]
    assert figure(text)["layout"]["yaxis"]["tickformat"] == ".0%"
    other = signed_in().get("/p/tools/trends/?measure=interaction/error_rate").content.decode()
    assert "0.25" in [cell.text for row in parse(other).table("Values").rows for cell in row.cells]
    assert "tickformat" not in figure(other)["layout"]["yaxis"]


def test_any_measure_can_be_drawn(signed_in, version):
    measured_run(version, "pass")
    measured_run(version, "pass")
    text = signed_in().get("/p/tools/trends/?measure=interaction/error_rate").content.decode()
    assert figure(text)["data"][-1]["y"] == [0.25, 0.25]


def test_measures_are_offered_by_the_names_of_their_charts(signed_in, version):
    measured_run(version, "pass")
    field = parse(signed_in().get("/p/tools/trends/")).field("Measure")
    assert (field.value, field.choices["trial/pass"]) == ("trial/pass", "Trial: Pass rate")
    assert field.choices["interaction/first_try_success_rate"] == "Interaction: First-try success"


def test_new_versions_of_tool_and_guidance_are_marked_once(signed_in, version):
    measured_run(version, "pass", tool_version="1.0", guidance=make_guidance(version.suite, "v1"))
    measured_run(version, "fail", tool_version="2.0", guidance=make_guidance(version.suite, "v2"))
    layout = figure(signed_in().get("/p/tools/trends/").content.decode())["layout"]
    assert [(each["text"], each["hovertext"]) for each in layout["annotations"]] == [("<b>TG</b>", "2.0, v2")]


def test_names_cannot_leave_the_figure(signed_in, version):
    measured_run(version, "pass", tool_version="1.0")
    measured_run(version, "pass", tool_version="</script><b>2.0</b>")
    text = signed_in().get("/p/tools/trends/").content.decode()
    assert "</script><b>" not in text
    assert figure(text)["layout"]["annotations"][0]["hovertext"] == "&lt;/script>&lt;b>2.0&lt;/b>"


def test_a_single_run_draws_no_line(signed_in, version):
    measured_run(version, "pass")
    text = parse(signed_in().get("/p/tools/trends/"))
    assert "A line needs at least two." in text


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
    assert len(parse(text).all("select[name=measure][hx-swap-oob=true]")) == 1
    assert "hx-swap-oob" not in client.get("/p/tools/trends/").content.decode().partition("<main")[2]


def test_statements_are_counted_by_guidance(signed_in, version):
    for name, issue in (("v1", "Guessed a flag."), ("v2", "Guessed a flag"), ("v2", "guessed a flag.")):
        run = make_run(version, guidance=None)
        run.guidance = version.suite.guidance.filter(name=name).first() or make_guidance(version.suite, name)
        run.save()
        make_judging(make_trial(run), content={"negatives": [issue], "positives": []})
    found = signed_in().get("/p/tools/reviews/").context["readings"]
    counted = [(each.guidance, [len(issue.trials) for issue in each.issues]) for each in found]
    assert counted == [("v2", [2]), ("v1", [1])]


def test_judgings_that_do_not_count_are_left_out(signed_in, version):
    make_judging(make_trial(make_run(version)), counts=False)
    assert "These runs had no judge." in parse(signed_in().get("/p/tools/reviews/"))


def opened(client, page):
    return client.get(f"/p/tools/{page}/").context["suite"].slug


def test_both_pages_open_with_the_suite_that_was_run_last(signed_in, version):
    other = make_suite(version.suite.project, ["create"], name="zebra")
    measured_run(version, "pass")
    close(make_run(other))
    assert (opened(signed_in(), "trends"), opened(signed_in(), "reviews")) == ("zebra", "basics")
    measured = make_run(other)
    make_judging(make_trial(measured, "create"))
    close(measured)
    assert opened(signed_in(), "reviews") == "zebra"


def test_without_judgments_reviews_open_with_the_newest_run(signed_in, version):
    close(make_run(make_suite(version.suite.project, ["create"], name="zebra")))
    assert opened(signed_in(), "reviews") == "zebra"
