"""The scenarios and trials on a run's page: in parts, narrowed, opened."""

from __future__ import annotations

from tests.builders import close, make_run, make_suite, make_trial, score
from tests.web.runs.pages import address, page


def test_a_chip_narrows_the_scenarios(signed_in, version):
    run = make_run(version)
    make_trial(run, "create", outcome="fail")
    make_trial(run, "export")
    response = signed_in().get(address(run) + "?show=failing")
    assert [row.key for row in response.context["rows"]] == ["create"]


def test_a_scenario_that_went_well_opens_when_it_is_asked_for(signed_in, version):
    run = make_run(version)
    trial = make_trial(run, "create")
    client = signed_in()
    assert f"/p/tools/trials/{trial.pk}/" not in page(client, run)
    assert f"/p/tools/trials/{trial.pk}/" in page(client, run, "?open=create")


def test_htmx_gets_the_scenarios_alone(signed_in, version):
    run = make_run(version)
    make_trial(run)
    headers = {"HX-Request": "true", "HX-Target": "trials"}
    text = signed_in().get(address(run), headers=headers).content.decode()
    assert "<html" not in text
    assert "Scenarios and trials" in text


def test_many_scenarios_are_shown_in_parts(signed_in, project):
    keys = tuple(f"case-{n:02}" for n in range(60))
    run = make_run(make_suite(project, keys))
    for key in keys:
        make_trial(run, key)
    client = signed_in()
    first, second = page(client, run), page(client, run, "?from=50")
    assert "case-49" in first
    assert "case-50" not in first
    assert "from=50#trials" in first
    assert "case-59" in second
    assert "Next scenarios" not in second


def test_scenarios_whose_gates_and_judge_disagree_have_a_chip(signed_in, version):
    run = make_run(version)
    gates = score("gates", "file_exists", 1.0, True)
    make_trial(run, "create", outcome="fail", scores=[gates, score("judge", "judge", 0.2, False)])
    make_trial(run, "export", scores=[gates, score("judge", "judge", 0.9, True)])
    client = signed_in()
    assert "Gates and judge disagree <b>1</b>" in page(client, run)
    response = client.get(address(run) + "?show=disagreeing")
    assert [row.key for row in response.context["rows"]] == ["create"]


def test_where_gates_and_judge_agree_there_is_no_such_chip(signed_in, version):
    run = make_run(version)
    make_trial(run)
    assert "disagree" not in page(signed_in(), run)


def test_a_scenario_that_passed_in_the_baseline_and_lost_all_trials_says_so(signed_in, version):
    before = make_run(version)
    for key, outcomes in (("create", "pass pass"), ("export", "pass fail")):
        for outcome in outcomes.split():
            make_trial(before, key, outcome=outcome)
    run = make_run(version, baseline=close(before))
    for key in ("create", "create", "create", "export"):
        make_trial(run, key, outcome="fail")
    client = signed_in()
    text = page(client, close(run))
    assert text.count("▼ 3 of 3 lost") == text.count("▼ worse") == 1
    rows = client.get(address(run) + "?show=worse").context["rows"]
    assert [row.key for row in rows] == ["create", "export"]
