"""Strips of past outcomes and typical values: which runs they read, and by which index."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Run, Trial
from runs.results.outcome_history import read_histories, strip_around
from runs.results.trial_page.typical_values import typical_values
from scenarios.models import ScenarioVersion
from tests.builders import make_guidance, make_run, make_target, make_trial, make_version
from tests.query_plans import query_plan
from tests.runs.results.finished_runs import history


def test_a_strip_marks_where_a_version_changed(version):
    for guidance in (None, None, make_guidance(version.suite)):
        make_trial(make_run(version, guidance=guidance), "create")
    (strip,) = read_histories(version.suite).values()
    assert strip.outcomes == ("pass", "pass", "gap", "pass")
    assert strip.rate.n == 3


def test_two_failures_before_new_guidance_are_fixed(version):
    for outcome, guidance in (("fail", None), ("pass", make_guidance(version.suite))):
        for _ in range(2):
            make_trial(make_run(version, guidance=guidance), "create", outcome=outcome)
    (strip,) = read_histories(version.suite).values()
    assert strip.kind == "fixed"


def test_a_strip_leaves_out_what_cannot_be_compared(version):
    make_trial(make_run(version), "create", outcome="fail")
    make_trial(make_run(version), "export", outcome="fail")
    newest = make_version(version.suite, create={"prompt": "Another."}, export={})
    experiment = make_run(newest, is_experiment=True)
    make_trial(experiment, "export")
    created, exported = (version.suite.scenarios.get(key=key).pk for key in ("create", "export"))
    found = read_histories(version.suite, version=newest.pk)
    assert found[created].outcomes == ()
    assert found[exported].outcomes == ("fail",)
    own = read_histories(version.suite, up_to=experiment.pk, version=newest.pk)
    assert own[exported].outcomes == ("fail", "pass")


@pytest.mark.parametrize("last", ["judged", "unjudged"], ids=["judge last", "none last"])
def test_a_strip_leaves_out_runs_that_were_judged_otherwise(version, last):
    ScenarioVersion.objects.update(judge_hash="j")
    unjudged = {"options": {"judge": False}, "fingerprint": {"judge": "", "judge_sha256": ""}}
    judged = {"fingerprint": {"judge": "strict", "judge_sha256": "1" * 64}}
    kinds = [unjudged, judged] if last == "judged" else [judged, unjudged]
    for outcome, changes in zip(("pass", "fail"), kinds, strict=True):
        make_trial(make_run(version, **changes), "create", outcome=outcome)
    (strip,) = read_histories(version.suite).values()
    assert strip.outcomes == ("fail",)


def test_strips_have_the_finished_trials(version):
    runs = history(version)
    make_trial(runs[0], "create", outcome="", state="cancelled")
    running = make_run(version, state="running")
    make_trial(running, "create", outcome="error")
    expected = {
        scenario: [
            trial.pk for trial in Trial.objects.filter(scenario=scenario, state="finished").order_by("pk")
        ]
        for scenario in Trial.objects.values_list("scenario", flat=True)
    }
    found = read_histories(version.suite)
    assert {key: [pk for pk in strip.trials if pk] for key, strip in found.items()} == expected
    for key, strip in found.items():
        outcomes = dict(zip(strip.trials, strip.outcomes, strict=True))
        assert all(Trial.objects.get(pk=pk).outcome == outcomes[pk] for pk in expected[key])


def test_a_strip_ends_at_the_run_it_is_asked_for(version):
    runs = [make_run(version) for _ in range(3)]
    for run in runs:
        make_trial(run, "create")
    (strip,) = read_histories(version.suite, up_to=runs[1].pk).values()
    assert len(strip.outcomes) == 2


def test_a_strip_is_read_from_an_index_however_long_the_history_is(version):
    trial = history(version)[-1].trial_set.select_related("run").first()
    with CaptureQueriesContext(connection) as asked:
        assert strip_around(trial)
    statement = asked[-1]["sql"]
    (index,) = [each for each in Trial._meta.indexes if each.name == "trial_of_run"]
    held = {"id", *(Trial._meta.get_field(name).column for name in index.fields)}
    assert set(re.findall(r'"runs_trial"\."(\w+)"', statement)) <= held
    # PostgreSQL chooses by what the tables hold, SQLite by the statement alone.
    if connection.vendor == "sqlite":
        (step,) = query_plan(statement)
        assert "COVERING INDEX trial_of_run (run_id=? AND scenario_id=?)" in step


def test_a_strip_around_a_trial_is_of_its_scenario_alone(version):
    runs = history(version)
    make_trial(runs[0], "export", outcome="", state="cancelled")
    trial = runs[0].trial_set.select_related("run").get(scenario__key="export", outcome="fail")
    strip, siblings, _ = strip_around(trial)
    assert strip == read_histories(version.suite)[trial.scenario_id]
    assert [sibling.index for sibling in siblings] == [0, 1]
    assert siblings[0].pk == trial.pk


def test_typical_values_are_read_from_an_index(version):
    trial = history(version)[-1].trial_set.select_related("run").first()
    with CaptureQueriesContext(connection) as asked:
        typical_values(trial)
    if connection.vendor == "sqlite":
        plan = query_plan(asked[0]["sql"])
        assert any("COVERING INDEX trial_of_run (run_id=? AND scenario_id=?)" in step for step in plan)
        assert any("INDEX run_by_suite (suite_id=? AND target_id=?" in step for step in plan)
        assert not any("trial_by_scenario" in step for step in plan)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("outcomes", "index"),
    [(("pass", "fail"), 1), (("pass",), 0), (("pass", "error"), 0), (("error", ""), 0), (("", ""), None)],
    ids=["the same number", "another number", "none that is an error", "an error at last", "none that ended"],
)
def test_a_trial_is_compared_with_one_of_its_baseline(version, outcomes, index):
    # Of another target, so that no strip reaches it.
    project = version.suite.project
    before, run = (make_run(version, target=make_target(project, name)) for name in ("before", "now"))
    for outcome in outcomes:
        make_trial(before, "create", outcome=outcome)
    for _ in range(2):
        make_trial(run, "create")
    Run.objects.filter(pk=run.pk).update(baseline=before)
    trial = run.trial_set.select_related("run").get(index=1)
    strip, _, found = strip_around(trial)
    assert len(strip.outcomes) == 2
    assert (found and found.index) == index
    if found:
        assert found.pk == before.trial_set.get(index=index).pk
