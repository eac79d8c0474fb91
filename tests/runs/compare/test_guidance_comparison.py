"""Two versions of guidance compared over stored runs."""

from __future__ import annotations

from copy import copy

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.guidance.guidance_comparison import (
    MOST_READ,
    compare_pooled,
    read_guidance_runs,
    settings_of,
)
from runs.compare.guidance.guidance_findings import exposed_trials, list_levels
from runs.compare.guidance.guidance_matrix import guidance_matrix
from runs.models import Launch, Run, RunMeasure
from tests.builders import (
    close,
    make_guidance,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_trial,
    make_trials,
    make_version,
    score,
)
from tests.query_plans import query_plan

pytestmark = [pytest.mark.django_db, pytest.mark.spec("llm-tool-test", "Comparing guidance versions")]

KEYS = ("a", "b", "c")


@pytest.fixture
def version():
    return make_suite(make_project(), KEYS)


@pytest.fixture
def pair(version):
    return make_guidance(version.suite, "poor"), make_guidance(version.suite, "good")


def ran(version, guidance, outcome: str, trials: int = 5, **changes) -> Run:
    run = make_run(version, guidance=guidance, **changes)
    make_trials(run, {key: [outcome] * trials for key in KEYS})
    return close(run)


def matrix_of(suite):
    """Return the matrix of a suite's versions in the order of their numbers."""
    runs = read_guidance_runs(suite, most=100)
    return guidance_matrix(suite, list(suite.guidance.order_by("number")), runs)


def test_runs_of_one_launch_come_before_others(version, pair):
    launch = Launch.objects.create(project=version.suite.project, trigger="web")
    together = [ran(version, each, "pass", launch=launch) for each in pair]
    ran(version, pair[0], "fail")
    (chosen,) = settings_of(*pair)
    assert chosen.interleaved
    assert [list(side) for side in (chosen.before, chosen.after)] == [[run.pk] for run in together]


def test_many_newer_runs_of_one_version_leave_the_other_in(version, pair):
    old = ran(version, pair[0], "fail")
    newest = ran(version, pair[1], "pass")
    copies = [copy(newest) for _ in range(MOST_READ)]
    for each in copies:
        each.pk = None
    Run.objects.bulk_create(copies)
    (chosen,) = settings_of(*pair)
    assert (list(chosen.before), len(chosen.after), chosen.older) == ([old.pk], 20, MOST_READ - 20)


def test_only_the_same_target_and_tool_are_compared(version, pair):
    ran(version, pair[0], "pass", tool_version="1")
    ran(version, pair[1], "pass", tool_version="2")
    other = make_target(version.suite.project, "other")
    ran(version, pair[0], "fail", target=other, tool_version="2")
    assert settings_of(*pair) == []
    ran(version, pair[0], "fail", tool_version="2")
    (chosen,) = settings_of(*pair)
    assert (chosen.setting.tool_version, chosen.interleaved) == ("2", False)


def test_better_guidance_is_improved(version, pair):
    ran(version, pair[0], "fail"), ran(version, pair[1], "pass")
    compared = compare_pooled(settings_of(*pair)[0].load())
    assert compared.verdict is ChangeVerdict.IMPROVED
    assert (compared.pass_rate.before, compared.pass_rate.after) == (0.0, 1.0)
    assert set(compared.scenarios) == set(KEYS)


def test_many_runs_are_pooled_exactly(version, pair):
    for n in range(7):
        ran(version, pair[0], "fail" if n % 2 else "pass", trials=2)
        ran(version, pair[1], "pass", trials=2)
    compared = compare_pooled(settings_of(*pair)[0].load())
    rate, seconds = compared.pass_rate, next(e for e in compared.others if e.measure == "trial/seconds")
    assert (rate.before, rate.after, rate.trials) == (pytest.approx(4 / 7), 1.0, (42, 42))
    assert (seconds.before, seconds.effect) == (1.5, 0.0)


def test_the_newest_twenty_runs_are_compared(version, pair):
    for _ in range(22):
        ran(version, pair[0], "fail", trials=1)
    ran(version, pair[1], "pass")
    chosen = settings_of(*pair)[0].load()
    assert (len(chosen.before), len(chosen.after), chosen.older) == (20, 1, 2)
    assert "2 older runs are left out." in chosen.sentence


def test_a_changed_scenario_is_left_out(version, pair):
    ran(version, pair[0], "fail"), ran(version, pair[1], "pass")
    newest = make_version(version.suite, a={"prompt": "Another task."}, b={}, c={})
    ran(newest, pair[1], "pass")
    compared = compare_pooled(settings_of(*pair)[0].load())
    assert set(compared.scenarios) == {"b", "c"}
    assert set(compared.not_comparable) == {"a"}


def test_an_open_launch_is_compared_so_far(version, pair):
    launch = Launch.objects.create(project=version.suite.project, trigger="web")
    for guidance, outcome in zip(pair, ("fail", "pass"), strict=True):
        run = make_run(version, guidance=guidance, launch=launch, state="running")
        make_trial(run, "a", outcome=outcome)
        make_trial(run, "b", outcome="")
    (chosen,) = settings_of(*pair, launch.pk)
    loaded = chosen.load()
    assert (loaded.is_open, loaded.open_trials) == (True, 2)
    assert set(compare_pooled(chosen.load()).scenarios) == {"a"}
    assert settings_of(*pair) == []


def test_exposed_trials_stand_beside_all_of_the_same_scenarios(version, pair):
    before = ran(version, pair[0], "fail", trials=2)
    after = make_run(version, guidance=pair[1])
    for key, opened in (("a", True), ("b", False)):
        reached = {"delivered": True, "in_context": None, "opened": opened, "quoted": False}
        make_trial(after, key, detail={"exposure": reached})
    sides = [exposed_trials([run]) for run in (before, after)]
    found = {each.name: each for each in list_levels(*sides, KEYS)}
    opened = found["opened"]
    assert (opened.before.n, opened.after.passed, opened.after.n) == (0, 1, 2)
    assert (opened.exposed.passed, opened.exposed.n) == (1, 1)
    assert (opened.baseline.passed, opened.baseline.n) == (0, 2)
    assert found["in_context"].after.n == 0


def test_the_matrix_has_a_cell_for_each_pair(version, pair):
    ran(version, pair[0], "fail", tool_version="1")
    newest = ran(version, pair[1], "pass", tool_version="2")
    matrix = matrix_of(version.suite)
    (tool, (poor, good)), (_, (old, none)) = matrix.rows
    assert (tool, poor, none) == ("2", None, None)
    assert (good.runs, good.rate.share, good.first_try.mean) == ([newest.pk], 1.0, pytest.approx(0.5))
    assert (old.rate.n, old.cost.mean) == (15, None)
    assert matrix.cell("2", pair[1]) is good and matrix.cell("3", pair[1]) is None


def test_a_cell_counts_its_newest_runs_only(version, pair):
    ran(version, pair[0], "fail", tool_version="1")
    newest = [ran(version, pair[0], "pass", tool_version="1").pk for _ in range(20)]
    ((_, (cell, _)),) = matrix_of(version.suite).rows
    assert (cell.runs, cell.older, cell.rate.share) == (newest[::-1], 1, 1.0)


def test_a_cells_cost_has_an_interval_over_its_scenarios(version, pair):
    run = make_run(version, guidance=pair[0])
    for key, cost in zip(KEYS, (0.1, 0.2, 0.3), strict=True):
        make_trial(run, key, cost_usd=cost)
    close(run)
    ((_, (cell, _)),) = matrix_of(version.suite).rows
    assert cell.cost.mean == pytest.approx(0.2)
    # 0.2 ± 4.303 × 0.1 / √3, and no cost is below 0.
    assert cell.cost.interval == (0.0, pytest.approx(0.4484, abs=1e-4))
    # Equal values say nothing about their spread.
    assert cell.first_try.interval is None


CLAIMED = [score("interaction", "completed", 1.0), score("gates", "file_exists", None, passed=False)]


def false_done(run: Run) -> float | None:
    row = RunMeasure.objects.filter(run=run, scenario=None, measure__name="false_done").first()
    return row.mean if row else None


@pytest.mark.parametrize(
    ("completed", "gate", "value"), [(1.0, False, 1.0), (0.0, False, 0.0), (1.0, True, 0.0)]
)
def test_false_done_is_completed_with_a_failed_gate(version, completed, gate, value):
    run = make_run(version)
    scores = [score("interaction", "completed", completed), score("gates", "file_exists", None, gate)]
    make_trial(run, "a", outcome="pass" if gate else "fail", scores=scores)
    assert false_done(close(run)) == value


def test_without_gates_false_done_is_not_measured(version):
    run = make_run(version)
    make_trial(run, "a", scores=[score("interaction", "completed", 1.0)])
    assert false_done(close(run)) is None


def test_the_matrix_finds_its_rollups_by_index(version, pair):
    ran(version, pair[0], "pass")
    with CaptureQueriesContext(connection) as asked:
        matrix_of(version.suite)
    [means] = [each["sql"] for each in asked if "AVG" in each["sql"]]
    (index,) = RunMeasure._meta.constraints
    assert all(f'"runs_runmeasure"."{name}_id" IN (' in means for name in index.fields)
    if connection.vendor == "sqlite":
        assert any("(run_id=? AND scenario_id=? AND measure_id=?)" in step for step in query_plan(means))
