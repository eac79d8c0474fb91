"""The scenarios and trials on a run's page: in parts, narrowed, opened."""

from __future__ import annotations

import pytest

from tests.builders import close, make_run, make_suite, make_trial, make_trials, score
from tests.web.results.runs.pages import address, page, scenarios

pytestmark = pytest.mark.one_database


def test_a_chip_narrows_the_scenarios(signed_in, version):
    run = make_run(version)
    make_trial(run, "create", outcome="fail")
    make_trial(run, "export")
    assert scenarios(signed_in(), run, "?show=failing") == ["create"]


def test_a_scenario_that_went_well_opens_when_it_is_asked_for(signed_in, version):
    run = make_run(version)
    trial = make_trial(run, "create")
    client = signed_in()
    assert f"/p/tools/trials/{trial.pk}/" not in page(client, run).addresses
    assert f"/p/tools/trials/{trial.pk}/" in page(client, run, "?open=create").addresses


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
    assert first.link("Next scenarios ›").address.endswith("from=50#trials")
    assert "case-59" in second
    assert "Next scenarios" not in second


def test_scenarios_whose_gates_and_judge_disagree_have_a_chip(signed_in, version):
    run = make_run(version)
    gates = score("gates", "file_exists", 1.0, True)
    make_trial(run, "create", outcome="fail", scores=[gates, score("judge", "judge", 0.2, False)])
    make_trial(run, "export", scores=[gates, score("judge", "judge", 0.9, True)])
    client = signed_in()
    assert "Gates and judge disagree 1" in page(client, run).links
    assert scenarios(client, run, "?show=disagreeing") == ["create"]


def test_without_disagreement_there_is_no_chip_for_it(signed_in, version):
    run = make_run(version)
    make_trial(run)
    assert "disagree" not in page(signed_in(), run)


def cells(shown):
    """Return the head and the rows of the table as the texts of their cells."""
    table = shown.table("Scenarios")
    return [table.columns, *(row.texts for row in table.rows)]


def test_a_scenario_shows_mean_first_try_rate_and_commands(signed_in, version):
    run = make_run(version)
    for rate, commands in ((0.25, 4.0), (1.0, 1203.0)):
        scores = [score("interaction", "first_try_success_rate", rate)]
        scores += [score("interaction", "total_commands", commands), score("gates", "script", 1.0, True)]
        make_trial(run, "create", scores=scores, seconds=None)
    make_trial(run, "export", scores=[])
    client = signed_in()
    head, first, *trials, last = cells(page(client, close(run), "?open=create"))
    assert head == [
        "Scenario",
        "Trials",
        "Last 20 trials",
        "Class",
        "Passed",
        "Gates",
        "First-try",
        "Commands",
        "Time",
    ]
    assert first[5:] == ["2/2", "62 %", "603.5", "–"]
    assert [row[-4:] for row in trials] == [["1/1", "25 %", "4", "–"], ["1/1", "100 %", "1,203", "–"]]
    assert last[5:] == ["–", "–", "–", "1.5 s"]


def test_scenarios_are_filtered_by_their_class(signed_in, version):
    for outcome in ("pass", "fail", "pass"):
        run = make_run(version)
        make_trial(run, "create", outcome=outcome)
        make_trial(run, "export", outcome="fail")
        close(run)
    client = signed_in()
    assert page(client, run).table("Scenarios").row("create").cell("Class").text == "flaky"
    assert scenarios(client, run, "?show=broken") == ["export"]


def test_a_column_in_which_nothing_was_measured_is_left_out(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, "create", outcome="", seconds=None)
    client = signed_in()
    head = cells(page(client, run, "?open=create"))[0]
    assert head == ["Scenario", "Trials", "Last 20 trials", "Class", "Passed"]
    before = make_run(version)
    make_trial(before, "create", cost_usd=0.1, scores=[])
    run = make_run(version, baseline=close(before))
    make_trial(run, "create", outcome="error", cost_usd=0.1, seconds=None, error="No.")
    head, *rows = cells(page(client, close(run), "?open=create"))
    assert head[-2:] == ["Cost", "vs. baseline"]
    assert {len(row) for row in rows} == {len(head), len(head) - 2}


def test_a_scenario_that_lost_all_trials_is_marked(signed_in, version):
    before = make_run(version)
    for key, outcomes in (("create", "pass pass"), ("export", "pass fail")):
        for outcome in outcomes.split():
            make_trial(before, key, outcome=outcome)
    run = make_run(version, baseline=close(before))
    for key in ("create", "create", "create", "export"):
        make_trial(run, key, outcome="fail")
    client = signed_in()
    text = page(client, close(run))
    assert text.count("▼ lost 3 of 3 passes") == text.count("▼ worse") == 1
    assert scenarios(client, run, "?show=worse") == ["create", "export"]


def test_lost_passes_are_counted_for_equal_trial_numbers(signed_in, project):
    changes = (
        ("pass pass pass", "pass fail fail", "▼ lost 2 of 3 passes"),
        ("pass pass fail", "pass fail fail", "▼ lost 1 of 2 passes"),
        ("pass pass fail", "pass fail", "▼ worse"),
        ("pass pass", "fail fail fail error", "▼ lost 3 of 3 passes"),
        ("pass fail", "pass pass", "▲ better"),
        ("pass fail", "fail pass", "="),
        ("error", "fail", "–"),
        ("pass", "error", "–"),
        ("error", "error", "–"),
    )
    version = make_suite(project, [f"s{number}" for number, _ in enumerate(changes)])
    baseline = make_run(version)
    make_trials(baseline, {f"s{number}": before.split() for number, (before, _, _) in enumerate(changes)})
    run = make_run(version, baseline=close(baseline))
    make_trials(run, {f"s{number}": now.split() for number, (_, now, _) in enumerate(changes)})
    _, *rows = cells(page(signed_in(), close(run)))
    found = {row[0].split()[0]: row[-1] for row in rows if row[0].startswith("s")}
    assert found == {f"s{number}": sentence for number, (_, _, sentence) in enumerate(changes)}
