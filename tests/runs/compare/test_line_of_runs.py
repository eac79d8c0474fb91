"""The line of a run: who is in it, what freezes it, and what ends that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from django.utils import timezone

from evalhub.teams.models import Project
from runs.alerts.api import triage
from runs.compare.baselines import set_baseline
from runs.compare.comparison import compare_chosen, compare_with_baseline, recompute
from runs.compare.line import RECENT, line_runs
from runs.compare.measure_changes import compare_with_first
from runs.compare.shown_changes import shown_reference
from runs.models import Alert, Run
from runs.models.comparison import AlertState
from scenarios.models import SuiteVersion
from tests.builders import (
    make_compared,
    make_guidance,
    make_member,
    make_run,
    make_suite,
    make_version,
)

pytestmark = pytest.mark.django_db
KEYS = ("create", "export", "list", "remove")
GOOD = {key: ["pass"] * 5 for key in KEYS}
BAD = {**GOOD, "create": ["fail"] * 5, "export": ["fail"] * 5}
FINGERPRINT = {"target": "local", "provider": "mock", "tool_version": "1.0"}


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    return make_suite(project, KEYS)


def run_of(
    version: SuiteVersion, outcomes: Mapping[str, str | Sequence[str]] = GOOD, **changes: object
) -> Run:
    """Return a closed run of the same configuration and commit, compared."""
    run = make_compared(version, outcomes, **{"fingerprint": FINGERPRINT, "commit": "a", **changes})
    run.refresh_from_db()
    return run


def line_of(run: Run) -> list[int]:
    return run.old_side["runs"]


def steady(version: SuiteVersion, runs: int = 5) -> list[Run]:
    return [run_of(version) for _ in range(runs)]


def test_fewer_than_five_runs_are_no_line(version: SuiteVersion) -> None:
    before = steady(version, 4)
    run = run_of(version)
    assert (run.baseline, line_of(run)) == (before[-1], [])


def test_five_runs_are_a_line(version: SuiteVersion) -> None:
    before = steady(version)
    run = run_of(version, {**GOOD, "create": ["fail"] * 3})
    assert line_of(run) == [each.pk for each in before[::-1]]
    assert (run.baseline, run.verdict) == (before[-1], "regressed")
    change = run.changes.get(scenario__key="create", measure__name="pass")
    assert change.detail["trials"] == [25, 3]


def test_ten_runs_are_enough(version: SuiteVersion) -> None:
    before = steady(version, 11)
    assert line_of(run_of(version)) == [each.pk for each in before[:0:-1]]


def test_runs_that_measured_something_else_are_in_no_line(version: SuiteVersion) -> None:
    before = steady(version)
    run_of(version, is_experiment=True)
    run_of(version, trigger="confirm")
    run_of(version, model="other")
    run_of(version, fingerprint={**FINGERPRINT, "judge": "j", "judge_sha256": "1"})
    half = run_of(version, {key: ["pass"] * 4 + ["error"] for key in KEYS})
    run_of(version, {key: ["pass"] * 3 + ["error"] * 2 for key in KEYS})
    Run.objects.filter(pk=run_of(version).pk).update(trials=60)
    run = run_of(version, fingerprint={**FINGERPRINT, "judge": "j", "judge_sha256": "2"})
    assert line_of(run) == [half.pk, *(each.pk for each in before[::-1])]


def test_a_branch_uses_the_default_branchs_line_until_it_has_its_own(version: SuiteVersion) -> None:
    main = steady(version)
    first = run_of(version, branch="fix")
    assert line_of(first) == [each.pk for each in main[::-1]]
    own = [first, *(run_of(version, branch="fix") for _ in range(4))]
    run_of(version, branch="other")
    assert line_of(run_of(version, branch="fix")) == [each.pk for each in own[::-1]]
    assert line_of(run_of(version, branch="main")) == [each.pk for each in main[::-1]]


def test_an_edited_scenario_starts_its_own_line(version: SuiteVersion) -> None:
    steady(version)
    contents = {key: {"prompt": "Do it."} if key == "create" else {} for key in KEYS}
    edited = make_version(version.suite, **contents)
    first = run_of(edited, BAD)
    keys = set(first.changes.exclude(scenario=None).values_list("scenario__key", flat=True))
    assert (len(line_of(first)), keys) == (5, {"export"})
    left_out = first.changes.get(scenario=None, measure__layer="trial", measure__name="pass").detail
    assert left_out["not_comparable"] == {"create": ["task"]}


def test_new_guidance_is_compared_with_the_old_guidances_line(version: SuiteVersion) -> None:
    before = steady(version)
    run = run_of(version, guidance=make_guidance(version.suite))
    assert line_of(run) == [each.pk for each in before[::-1]]
    assert run.configuration_changed


def test_the_same_broken_job_pressed_again_is_still_red(version: SuiteVersion) -> None:
    before = steady(version)
    first = run_of(version, BAD)
    second = run_of(version, BAD)
    assert [each.verdict for each in (first, second)] == ["regressed"] * 2
    assert (first.old_side["since"], second.old_side["since"]) == (None, first.pk)
    assert line_of(second) == [each.pk for each in before[::-1]]
    assert second.baseline == before[-1]
    assert list(Alert.objects.values_list("run", flat=True)) == [first.pk]


def test_with_few_runs_the_last_one_that_did_not_regress_is_the_baseline(version: SuiteVersion) -> None:
    good = run_of(version)
    first = run_of(version, BAD)
    second = run_of(version, BAD)
    assert (second.baseline, second.verdict, second.old_side["since"]) == (good, "regressed", first.pk)


def test_three_good_runs_in_a_row_put_the_regression_into_the_line(version: SuiteVersion) -> None:
    steady(version)
    bad = run_of(version, BAD)
    fixed = [run_of(version, GOOD, commit=commit) for commit in "bcd"]
    run = run_of(version, GOOD, commit="e")
    assert line_of(run)[:4] == [*(each.pk for each in fixed[::-1]), bad.pk]


@pytest.mark.parametrize(
    ("state", "verdict", "members"),
    [
        (AlertState.WONT_FIX, "too_little", [7]),
        (AlertState.INVALID, "as_expected", [7, 6, 5, 4, 3, 2, 1]),
        (AlertState.FIXED, "regressed", [6, 5, 4, 3, 2, 1]),
    ],
)
def test_a_decision_says_what_becomes_of_the_runs(
    version: SuiteVersion, project: Project, state: AlertState, verdict: str, members: list[int]
) -> None:
    runs = [*steady(version, 6), run_of(version, BAD)]
    triage(Alert.objects.get(run=runs[-1]), by=make_member(project), state=state)
    run = run_of(version, BAD, commit="b")
    assert (line_of(run) or [run.baseline_id]) == [runs[number - 1].pk for number in members]
    assert (run.verdict, run.old_side["since"]) == (verdict, None)


def test_reopening_freezes_again(version: SuiteVersion, project: Project) -> None:
    steady(version)
    bad, by = run_of(version, BAD), make_member(project)
    alert = triage(Alert.objects.get(run=bad), by=by, state=AlertState.WONT_FIX)
    assert alert.decided
    triage(alert, by=by, state=AlertState.INVESTIGATING)
    assert run_of(version, BAD, commit="b").old_side["since"] == bad.pk


def test_other_scenarios_that_break_meanwhile_raise_their_own_alert(version: SuiteVersion) -> None:
    steady(version)
    first = run_of(version, BAD)
    other = run_of(version, {**GOOD, "list": ["fail"] * 5}, commit="b")
    assert other.old_side["since"] == first.pk
    assert set(Alert.objects.values_list("run", flat=True)) == {first.pk, other.pk}


def test_an_improvement_starts_a_new_line_when_a_second_run_shows_it(version: SuiteVersion) -> None:
    worse = [run_of(version, BAD) for _ in range(5)]
    first = run_of(version, GOOD)
    second = run_of(version, GOOD)
    assert [each.verdict for each in (first, second)] == ["improved"] * 2
    assert line_of(second) == [each.pk for each in worse[::-1]]
    third = run_of(version, GOOD)
    assert (third.baseline, third.verdict == "improved") == (second, False)


def test_a_regression_of_a_branch_freezes_that_branch_alone(version: SuiteVersion) -> None:
    steady(version)
    bad = run_of(version, BAD, branch="fix")
    again = run_of(version, BAD, branch="fix")
    assert again.old_side["since"] == bad.pk
    assert run_of(version, branch="main").old_side["since"] is None


def test_a_pinned_baseline_is_compared_alone(version: SuiteVersion, project: Project) -> None:
    before = steady(version)
    set_baseline(before[1], by=make_member(project))
    run = run_of(version)
    assert (run.baseline, line_of(run), run.old_side["is_pinned"]) == (before[1], [], True)


def test_a_requested_baseline_is_compared_alone(version: SuiteVersion) -> None:
    before = steady(version)
    bad = run_of(version, BAD)
    run = run_of(version, BAD, options={"baseline": str(before[0].pk)})
    assert (run.baseline, line_of(run), run.old_side["since"]) == (before[0], [], bad.pk)
    assert bad.pk != run.pk


def test_two_runs_of_a_line_that_varies_need_a_larger_difference(version: SuiteVersion) -> None:
    """Nights of 60 and 100 % say what a difference of 40 points between two of them is worth."""
    low = {key: ["pass"] * 3 + ["fail"] * 2 for key in KEYS}
    runs = [run_of(version, low if n % 2 else GOOD) for n in range(6)]
    given = {"options": {"baseline": str(runs[0].pk)}}
    last = run_of(version, low, **given)
    assert last.verdict != "regressed"
    chosen = compare_chosen(runs[0], runs[5])
    assert compare_with_first(runs[0], [runs[5]])[0].verdict == "regressed" != chosen.verdict
    Run.objects.filter(pk__in=[last.pk, *(run.pk for run in runs[1::2])]).update(branch="other")
    for _ in range(3):
        run_of(version)
    assert run_of(version, low, **given).verdict == "regressed"


def test_a_pinned_baseline_that_is_the_best_is_named(version: SuiteVersion, project: Project) -> None:
    best = run_of(version)
    for _ in range(5):
        run_of(version, {**GOOD, "create": ["pass"] * 4 + ["fail"]})
    set_baseline(best, by=make_member(project))
    shown = shown_reference(run_of(version))
    assert shown is not None
    assert shown.best_of == 6


def test_a_verdict_stays_when_a_run_of_its_line_is_measured_again(version: SuiteVersion) -> None:
    before = steady(version)
    run = run_of(version)
    shown = shown_reference(run)
    assert shown is not None
    assert not shown.has_changed
    Run.objects.filter(pk=before[2].pk).update(rollups_at=timezone.now() + timedelta(seconds=1))
    shown = shown_reference(run)
    assert shown is not None
    assert [each.run for each in shown.runs if each.changed_later] == [before[2]]


def test_a_run_of_a_line_that_is_recomputed_leaves_later_verdicts(version: SuiteVersion) -> None:
    before = steady(version)
    run = run_of(version, {**GOOD, "create": ["fail"] * 3})
    trials = list(before[-1].trial_set.values_list("pk", flat=True))
    before[-1].trial_set.update(outcome="fail")
    recompute(before[-1], trials)
    stored, run_before = run.old_side["compared"], run.verdict
    run.refresh_from_db()
    assert (run.old_side["compared"], run.verdict) == (stored, run_before)
    shown = shown_reference(run)
    assert shown is not None
    assert shown.has_changed


def test_a_long_frozen_line_is_remembered(version: SuiteVersion) -> None:
    before = steady(version)
    bad = run_of(version, BAD)
    red = {"verdict": "regressed", "old_side": {"since": bad.pk, "runs": []}, "trials": 4, "failed": 4}
    for _ in range(RECENT + 2):
        make_run(version, **red)
    last = run_of(version, BAD)
    assert last.old_side["since"] == bad.pk
    assert line_of(last) == [each.pk for each in before[::-1]]


def test_old_runs_are_read_without_what_they_were_compared_with(version: SuiteVersion) -> None:
    steady(version)
    Run.objects.update(old_side={})
    run = run_of(version)
    assert len(line_of(run)) == 5
    assert shown_reference(Run.objects.order_by("pk")[0]) is None
    assert line_runs(run).count() == 5


def test_comparing_takes_few_queries(version: SuiteVersion, django_assert_max_num_queries) -> None:
    steady(version)
    run = run_of(version)
    with django_assert_max_num_queries(40):
        compare_with_baseline(Run.objects.select_related("project").get(pk=run.pk))
