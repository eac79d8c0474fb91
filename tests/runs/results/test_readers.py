"""Readers: what they return, and in how many queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalhub.web.chips import rows_of_kind
from runs.compare.api import trend
from runs.compare.home_page.views import cost_by_day, project_summary, running_now
from runs.compare.line import reference_of
from runs.results.digests import Digest, RunTrials, trials_of
from runs.results.outcome_history import read_histories, recent_runs
from runs.results.progress import progress_of
from runs.results.repeated_statements import read_judged_statements
from runs.results.run_filters import RunListFilters, read_filter_choices
from runs.results.run_list import page_of_runs, read_rows
from runs.results.run_page.first_screen import find_earlier
from runs.results.run_page.layers import layers_of
from runs.results.run_page.scenarios import FACETS, count_facets, part_of
from runs.results.run_page.subcommands import count_subcommands
from runs.results.subcommand_totals import SubcommandTotal
from runs.results.trial_page.trial_page import find_shown_trial, trial_page
from runs.review.review_page.views import rationales_of
from runs.suites.suite_page.suite_page import find_shown_suite, suite_page
from runs.suites.suite_page.views import SuiteFilters, list_suites_of_project
from tests.builders import close, make_run, make_suite, make_trial
from tests.query_plans import query_plan
from tests.runs.results.finished_runs import history, rows_of
from tests.trial_parts import make_judging

READERS = {
    "page of runs": (3, lambda v: read_rows(page_of_runs(v.suite.project, RunListFilters(), "").rows)),
    "choices": (4, lambda v: read_filter_choices(v.suite.project)),
    "project_summary": (11, lambda v: project_summary(v.suite.project, now=timezone.now())),
    "running now": (1, lambda v: running_now(v.suite.project)),
    "layers": (1, lambda v: layers_of(v.runs.first(), RunTrials(Digest()), None)),
    "trials": (6, lambda v: trials_of(v.runs.first())),
    "recent runs": (1, lambda v: recent_runs(v.suite.pk)),
    "scenario rows": (1, lambda v: rows_of(v.runs.first())),
    "progress": (0, lambda v: progress_of(v.runs.first())),
    "strips": (2, lambda v: read_histories(v.suite)),
    "suite list": (6, lambda v: list_suites_of_project(v.suite.project, SuiteFilters())),
    "suite page": (8, lambda v: suite_page(find_shown_suite(v.suite.project, v.suite.slug))),
    "trend": (3, lambda v: trend(v.suite, "trial/pass")),
    "rationales": (3, lambda v: rationales_of(v.suite.project, v.suite.slug, "")),
}
OF_THE_CALLER = {"layers": 2, "scenario rows": 8, "progress": 1, "trials": 1}
"""Queries that fetch what the reader is given."""


@pytest.mark.parametrize("name", READERS)
def test_it_asks_as_often_for_many_as_for_few(version, name, django_assert_num_queries):
    queries, read = READERS[name]
    history(version)
    with django_assert_num_queries(queries + OF_THE_CALLER.get(name, 0)):
        read(version)


def test_a_trial_asks_for_its_parts_once(version, django_assert_num_queries):
    found = history(version)[0].trial_set.first()
    with django_assert_num_queries(7):
        trial_page(find_shown_trial(version.suite.project, found.pk))


def test_layers_hold_means_gates_and_statements(version):
    run = history(version, 1)[0]
    layers = layers_of(run, trials_of(run), None)
    assert [mean.name for mean in layers.interaction] == [
        "first_try_success_rate",
        "error_rate",
        "total_commands",
    ]
    assert [(gate.name, gate.passed, gate.total) for gate in layers.digest.gates] == [("file_exists", 1, 2)]
    assert layers.digest.gate_trials == (1, 2)
    assert layers.judge.mean == pytest.approx(0.6)
    assert [criterion.label for criterion in layers.criteria] == ["Efficiency"]
    assert [len(issue.trials) for issue in layers.digest.issues] == [2]


def test_statements_in_the_same_words_are_one(version):
    run = make_run(version)
    for text in ("Guessed a flag.", "guessed  a flag", "Read no help."):
        make_judging(make_trial(run), content={"negatives": [text], "positives": []})
    said = read_judged_statements([run.pk])
    assert [(issue.text, len(issue.trials)) for issue in said.issues] == [
        ("Guessed a flag.", 2),
        ("Read no help.", 1),
    ]
    assert (said.highlights, said.judged, said.contradictory) == ([], 3, [])


def test_a_statements_trials_are_newest_first(version):
    run = make_run(version)
    trials = [make_trial(run) for _ in range(3)]
    # As they came to their end.
    for at in (1, 0, 2):
        make_judging(trials[at])
    (issue, *_) = read_judged_statements([run.pk]).issues
    assert issue.trials == tuple(trial.pk for trial in reversed(trials))


def test_chips_count_what_they_leave(version):
    run = make_run(version)
    make_trial(run, "create")
    make_trial(run, "export", outcome="fail")
    counted = {chip.name: chip.n for chip in count_facets(rows_of(run)).chips}
    assert counted == {"": 2, "failing": 1}


def test_scenarios_with_trials_that_were_not_run_have_a_chip(version):
    run = make_run(version)
    make_trial(run, "create")
    make_trial(run, "create", outcome="")
    make_trial(run, "export", outcome="", state="running")
    rows = rows_of(run)
    assert {chip.name: chip.n for chip in count_facets(rows).chips} == {"": 2, "not-run": 1}
    assert [row.key for row in rows_of_kind(rows, "not-run", FACETS)] == ["create"]


def test_a_subcommand_with_few_calls_comes_last(version):
    used = [SubcommandTotal("rare", calls=2, errors=2), SubcommandTotal("often", calls=20, errors=2)]
    read = RunTrials(Digest(subcommands=used))
    assert [(row.name, row.few, row.heat) for row in count_subcommands(make_run(version), read)] == [
        ("often", False, 2),
        ("rare", True, 1),
    ]


def test_progress_guesses_the_time_left_from_the_speed_so_far(version):
    run = make_run(version, state="running", started=timezone.now())
    make_trial(run)
    make_trial(run, outcome="")
    progress = progress_of(run)
    assert (progress.done, progress.waiting) == (1, 1)
    assert progress.left_seconds == pytest.approx(0, abs=2)


def test_a_point_of_one_scenario_has_no_interval(version):
    run = make_run(version)
    make_trial(run, "create")
    close(run)
    assert trend(version.suite, "trial/pass").points[0].half is None


def test_a_page_is_filled_with_scenarios_and_their_shown_trials(project):
    keys = tuple(f"case-{n:02}" for n in range(60))
    run = make_run(make_suite(project, keys))
    for n, key in enumerate(keys):
        make_trial(run, key, outcome="fail" if n < 10 else "pass")
    rows = rows_of(run)
    first = part_of(rows, 0, "")
    assert [len(first.rows), first.following] == [50, 50]
    assert [part_of(rows, 40, "").following, part_of(rows, 99, "").rows] == [None, []]


def test_trials_of_the_baseline_are_separate(version):
    before = make_run(version)
    make_trial(before, "create", outcome="fail")
    make_trial(before, "export", outcome="", state="cancelled")
    run = make_run(version, baseline=before)
    make_trial(run, "create")
    read = trials_of(run)
    assert [(trial.key, trial.mark) for trial in read.trials] == [("create", "pass")]
    assert read.before == {"create": ["fail"]}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses by what the tables hold.")
@pytest.mark.parametrize(
    ("read", "index"),
    [
        (lambda project: cost_by_day(project, now=timezone.now()), "run_by_day"),
        (running_now, "run_by_state"),
        (lambda project: page_of_runs(project, RunListFilters(), ""), "trial_without_cost"),
    ],
    ids=["week", "running", "costs"],
)
def test_runs_are_found_by_index(version, read, index):
    with CaptureQueriesContext(connection) as asked:
        read(version.suite.project)
    assert any(index in step for step in query_plan(asked[0]["sql"]))


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses by what the tables hold.")
def test_rollups_of_few_runs_are_read_without_those_of_others(version):
    run = history(version)[-1]
    with CaptureQueriesContext(connection) as asked:
        layers_of(run, trials_of(run), None, find_earlier(run, None))
        reference_of(run, "")
    found = [each["sql"] for each in asked if 'FROM "runs_runmeasure" ' in each["sql"]]
    assert len(found) >= 3
    for statement in found:
        steps = [step for step in query_plan(statement) if "runs_runmeasure" in step]
        assert all("(run_id=?" in step for step in steps), steps
