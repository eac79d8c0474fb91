"""Scenarios that look worse are run again in the same run, and their fresh trials alone decide."""

from __future__ import annotations

import itertools

import pytest

from runs.compare.baselines import set_baseline
from runs.compare.comparison import read_passes
from runs.compare.retests import named_since, retests_of
from runs.engine import recording
from runs.engine.reaper import reap
from runs.engine.retrying import RetryKind, retry_trials
from runs.models import Alert, Run, RunMeasure, Trial
from runs.models.comparison import AlertState
from tests.builders import make_guidance
from tests.runs.carrying import passed, start
from tests.runs.looking import carry, decisions, failing, ran, requested, suite, trials_by_key

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = tuple(f"s{n}" for n in range(5))
GIVEN = {"trials": 3}


@pytest.fixture
def version():
    return suite(KEYS, provider="cli")


def in_turn(first, *fresh, key="s0", trials=3):
    """Return results: of one scenario the first trials', then those of its fresh ones; others pass."""
    outcomes = itertools.chain([first] * trials, fresh, itertools.repeat(first))
    return lambda _, name: passed(outcome=next(outcomes) if name == key else "pass")


def rows(run):
    return [(each.key, each.kind.value, tuple(each.fresh), str(each.outcome)) for each in retests_of(run)]


def fresh_of(run):
    return Trial.objects.filter(run=run, is_retest=True)


def test_a_broken_scenario_is_named_in_the_first_run(version):
    ran(version, failing(), trials=6)
    run = ran(version, failing("s0"), **GIVEN)
    (retest,) = retests_of(run)
    assert rows(run) == [("s0", "line", (0, retest.planned), "named")]
    assert run.find_retested("named") == ["s0"]
    assert (retest.first, retest.stopped, retest.batch) == ((0, 3), "", 1)
    assert retest.p < retest.level
    assert trials_by_key(run)["s0"] == 3 + retest.planned
    assert fresh_of(run).count() == retest.planned


def test_a_run_counts_its_first_trials_only(version):
    ran(version, failing(), trials=6)
    run = ran(version, failing("s0", cost_usd=0.1), **GIVEN)
    fresh = fresh_of(run).count()
    assert fresh == 6
    assert (run.trials, run.passed, run.failed, run.errors, run.open) == (15, 12, 3, 0, 0)
    assert (run.state, run.outcome) == ("finished", "fail")
    # The bill has all.
    assert run.cost_usd == pytest.approx(0.1 * (15 + fresh))
    assert run.retest_usd == pytest.approx(0.1 * fresh)
    assert (run.cost_of_trial, run.cost_per_success) == (pytest.approx(0.1), pytest.approx(1.5 / 12))
    rollups = RunMeasure.objects.filter(run=run, measure__layer="trial", scenario__key="s0")
    assert dict(rollups.values_list("measure__name", "n"))["pass"] == 3
    assert read_passes(run.pk)["s0"] is False


def test_a_flake_passes_again(version):
    ran(version, failing(), **GIVEN)
    run = ran(version, in_turn("fail", *["pass"] * 12), **GIVEN)
    assert rows(run) == [("s0", "line", (7, 7), "passes_again")]
    assert run.find_retested("named") == []
    assert read_passes(run.pk)["s0"] is False


def test_what_passes_partly_is_not_decided(version):
    ran(version, failing(), trials=5)
    run = ran(version, in_turn("fail", "pass", "fail", "pass", "fail", "pass", "fail"), **GIVEN)
    assert rows(run) == [("s0", "line", (3, 6), "not_decided")]


def test_too_few_earlier_trials_are_said(version):
    ran(version, failing(), trials=2)
    run = ran(version, failing("s0"), trials=6)
    assert rows(run) == [("s0", "line", (0, 0), "too_few_earlier_trials")]
    assert fresh_of(run).count() == 0


def test_without_earlier_runs_nothing_is_run_again(version):
    run = ran(version, failing(*KEYS), **GIVEN)
    assert (run.retests, fresh_of(run).count()) == ([], 0)


@pytest.mark.parametrize("where", ["request", "suite", "shard"])
def test_it_can_be_left_out(version, where):
    ran(version, failing(), **GIVEN)
    if where == "suite":
        version.suite.retests = False
        version.suite.save()
    options = {"request": {"retest": False}, "shard": {"shard": "1/2"}}.get(where, {})
    run = ran(version, failing("s0"), **GIVEN, **options)
    assert (run.retests, fresh_of(run).count()) == ([], 0)


def test_targets_that_answer_the_same_each_time_are_not_asked_again():
    version = suite(KEYS, provider="mock")
    ran(version, failing(), **GIVEN)
    assert ran(version, failing("s0"), **GIVEN).retests == []


def test_three_at_a_time_and_more_while_all_are_named():
    version = suite([f"s{n}" for n in range(20)], provider="cli")
    ran(version, failing(), trials=9)
    run = ran(version, failing("s0", "s1", "s2", "s3", "s4"), **GIVEN)
    assert sorted(run.find_retested("named")) == ["s0", "s1", "s2", "s3", "s4"]
    assert [each.batch for each in retests_of(run)] == [1, 1, 1, 2, 2]


def test_there_is_no_next_batch_where_one_passes_again():
    version = suite([f"s{n}" for n in range(20)], provider="cli")
    ran(version, failing(), trials=9)
    run = requested(version, **GIVEN).runs.get()
    carry([run], failing("s0", "s1", "s2", "s3"), most=60)
    carry([run], failing("s0", "s1"))
    run.refresh_from_db()
    assert [each.batch for each in retests_of(run)] == [1, 1, 1]
    assert set(run.find_retested("named")) == {each.key for each in retests_of(run)} & {"s0", "s1"}


def test_no_more_fresh_trials_than_first_ones_but_a_whole_batch(version):
    ran(version, failing(), trials=6)
    run = ran(version, failing(*KEYS), **GIVEN)
    assert len(retests_of(run)) == 3
    assert 15 < fresh_of(run).count() <= 36


def test_a_third_of_errors_stops_it(version):
    ran(version, failing(), **GIVEN)
    run = ran(
        version,
        lambda _, key: (
            passed(outcome="error", error="away") if key in ("s1", "s2") else failing("s0")(None, key)
        ),
        **GIVEN,
    )
    assert run.retests == []


def test_the_budget_breaks_it_off_and_what_is_there_decides(version):
    ran(version, failing(), trials=6)
    run = ran(version, failing("s0", cost_usd=0.1), max_usd=1.8, **GIVEN)
    (retest,) = retests_of(run)
    assert (retest.fresh, retest.planned) == ((0, 3), 6)
    assert "budget of $1.80 was reached" in retest.stopped
    assert (run.state, run.cancelled, run.failed) == ("finished", 0, 3)
    assert str(retest.outcome) == "not_decided"


def test_a_cancel_stops_the_fresh_trials_and_leaves_the_run_finished(version):
    ran(version, failing(), **GIVEN)
    run = requested(version, **GIVEN).runs.get()
    carry([run], failing("s0"), most=17)
    recording.cancel_run(run.pk)
    run.refresh_from_db()
    (retest,) = retests_of(run)
    assert (run.state, run.cancelled, run.outcome) == ("finished", 0, "fail")
    assert (retest.fresh, retest.planned, retest.stopped) == ((0, 2), 7, "The run was cancelled.")


def test_an_error_among_fresh_trials_is_replaced_once(version):
    ran(version, failing(), trials=6)
    run = ran(version, in_turn("fail", "fail", "error", "fail", "error", "fail", "fail", "error"), **GIVEN)
    (retest,) = retests_of(run)
    # Six, two in place of errors, of which one ended as an error too.
    assert (retest.fresh, retest.planned, retest.replaced) == ((0, 5), 6, 2)
    assert retest.stopped == "Trials hit errors."
    assert (run.errors, fresh_of(run).count()) == (0, 8)


def test_a_retried_run_is_retested_once(version):
    ran(version, failing(), trials=6)
    run = requested(version, **GIVEN).runs.get()
    carry([run], lambda _, key: passed(outcome={"s0": "fail", "s1": "error"}.get(key, "pass")))
    run.refresh_from_db()
    before = run.retests
    assert run.find_retested("named") == ["s0"]
    retry_trials(run, RetryKind.RETRY, by=None, wake=False)
    start(run)
    assert carry([run], failing("s0")) == 3
    run.refresh_from_db()
    assert (run.state, run.errors, run.retests) == ("finished", 0, before)


def test_cancelled_fresh_trials_are_not_resumed(version):
    ran(version, failing(), **GIVEN)
    run = requested(version, **GIVEN).runs.get()
    carry([run], failing("s0"), most=16)
    recording.cancel_run(run.pk)
    with pytest.raises(Exception, match="no cancelled trials to resume"):
        retry_trials(Run.objects.get(pk=run.pk), RetryKind.RESUME, by=None, wake=False)


def test_a_lost_worker_s_retest_is_queued_by_the_tick_once(version):
    ran(version, failing(), **GIVEN)
    run = requested(version, **GIVEN).runs.get()
    carry([run], failing("s0"), most=14)
    queued = Trial.objects.get(run=run, state="queued")
    Trial.objects.filter(pk=queued.pk).update(state="finished", outcome="pass")
    Run.objects.filter(pk=run.pk).update(open=0, passed=12)
    reap()
    reap()
    run.refresh_from_db()
    assert (run.state, run.open, fresh_of(run).count()) == ("running", 7, 7)


def test_a_pinned_baseline_is_the_old_side(version):
    base = ran(version, failing("s0"), **GIVEN)
    ran(version, failing(), **GIVEN)
    set_baseline(base, by=None)
    run = ran(version, failing("s0", "s1"), **GIVEN)
    assert [(each.key, each.old) for each in retests_of(run)] == [("s1", (3, 3))]


def test_a_run_until_a_verdict_retests_after_its_last_look(version):
    ran(version, failing(), trials=12)
    run = ran(version, failing("s0"), until_decided=True, max_trials=12)
    assert decisions(run)[-1] in ("decided", "futile", "limit")
    assert run.find_retested("named") == ["s0"]
    assert run.trials == Trial.objects.filter(run=run, round=0).count()


def alerted(version):
    """Return a run that named a scenario, with its open alert."""
    ran(version, failing(), trials=6)
    run = ran(version, failing("s0"), **GIVEN)
    Alert.objects.get_or_create(run=run, defaults={"project": run.project})
    return run


def test_a_named_scenario_is_not_run_again_while_its_alert_is_open(version):
    first = alerted(version)
    assert ran(version, failing("s0"), **GIVEN).retests == []
    Alert.objects.filter(run=first).update(state=AlertState.INVALID)
    assert ran(version, failing("s0"), **GIVEN).find_retested("named") in (["s0"], [])


@pytest.mark.slow
def test_a_named_scenario_that_passes_again_is_fixed(version):
    alerted(version)
    ran(version, failing("s0"), **GIVEN)
    run = ran(version, failing(), **GIVEN)
    (retest,) = retests_of(run)
    # Six fresh trials of the run that named it, and three of the next.
    assert (retest.kind.value, retest.old, retest.fresh) == ("fix", (0, 9), (6, 6))
    assert str(retest.outcome) == "fixed"
    assert run.find_retested("named") == []
    assert ran(version, failing(), **GIVEN).retests == []


def test_three_runs_that_do_not_look_worse_release_a_named_scenario(version):
    first = alerted(version)
    run = first
    for _ in range(3):
        # Two of three pass, and of the fresh trials half: not fixed.
        run = ran(version, in_turn("pass", "pass", "pass", "pass", "fail", "fail", "fail"), **GIVEN)
    assert Alert.objects.get(run=first).state == AlertState.UNTRIAGED
    assert named_since(first, "") == {}
    assert str(retests_of(run)[0].outcome) == "not_decided"
    assert named_since(requested(version, **GIVEN).runs.get(), "") == {}


def test_runs_of_another_branch_release_nothing(version):
    first = alerted(version)
    for _ in range(3):
        other = requested(version, **GIVEN).runs.get()
        Run.objects.filter(pk=other.pk).update(branch="feature")
        carry([other], failing())
    assert named_since(requested(version, **GIVEN).runs.get(), "") == {"s0": first.pk}


def ab(version, result, **options):
    guidance = [make_guidance(version.suite, name) for name in ("old", "new")]
    launch = requested(version, guidance=guidance, **{**GIVEN, **options})
    old, new = launch.runs.order_by("pk")
    order = []

    def record(run, key):
        order.append(run.pk)
        return result(run.pk == new.pk, key)

    carry([old, new], record)
    return Run.objects.get(pk=old.pk), Run.objects.get(pk=new.pk), order


def test_arms_of_several_guidances_run_nothing_again(version):
    ran(version, failing(), **GIVEN)
    arms = ab(version, lambda is_new, key: passed(outcome="fail" if key == "s0" else "pass"))
    assert [arm.retests for arm in arms[:2]] == [[], []]


def test_an_ab_runs_both_arms_again_in_turn(version):
    old, new, order = ab(
        version,
        lambda is_new, key: passed(outcome="fail" if is_new and key == "s0" else "pass"),
        fail_on_regression=True,
    )
    assert (old.state, new.state) == ("finished", "finished")
    assert (rows(new), old.retests) == ([("s0", "in_turn", (0, 6), "named")], [])
    assert retests_of(new)[0].old == (6, 6)
    assert (fresh_of(old).count(), fresh_of(new).count()) == (6, 6)
    assert order[30:] == [old.pk, new.pk] * 6


def test_an_ab_in_which_both_arms_fail_again_names_nothing(version):
    seen = itertools.count()
    _, new, _ = ab(
        version,
        # The old arm passes its first trials only.
        lambda is_new, key: passed(outcome="fail" if key == "s0" and (is_new or next(seen) >= 3) else "pass"),
        fail_on_regression=True,
    )
    assert rows(new) == [("s0", "in_turn", (0, 6), "not_decided")]


def test_the_second_arm_waits_for_the_first(version):
    guidance = [make_guidance(version.suite, name) for name in ("old", "new")]
    old, new = requested(version, guidance=guidance, fail_on_regression=True, **GIVEN).runs.order_by("pk")
    carry([new], failing("s0"))
    new.refresh_from_db()
    assert (new.state, new.open, new.retests) == ("running", 0, [])
    recording.cancel_run(old.pk)
    reap()
    assert set(Run.objects.values_list("state", flat=True)) == {"cancelled", "finished"}


def test_a_retried_arm_adds_nothing_to_one_that_ended(version):
    old, new, _ = ab(
        version,
        lambda is_new, key: passed(
            outcome="error" if is_new and key == "s1" else "fail" if is_new and key == "s0" else "pass"
        ),
        fail_on_regression=True,
    )
    assert (new.find_retested("named"), new.errors) == (["s0"], 3)
    retry_trials(new, RetryKind.RETRY, by=None, wake=False)
    start(new)
    assert carry([new], failing("s0", "s1")) == 3
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.state, old.open, new.state, new.find_retested("named")) == ("finished", 0, "finished", ["s0"])


def test_a_cancelled_arm_decides_by_what_is_there(version):
    guidance = [make_guidance(version.suite, name) for name in ("old", "new")]
    old, new = requested(version, guidance=guidance, fail_on_regression=True, **GIVEN).runs.order_by("pk")
    broken = lambda run, key: passed(outcome="fail" if run.pk == new.pk and key == "s0" else "pass")  # noqa: E731
    carry([old, new], broken, most=38)
    recording.cancel_run(old.pk)
    carry([new], broken)
    old.refresh_from_db()
    new.refresh_from_db()
    (retest,) = retests_of(new)
    assert (old.state, old.outcome, new.state) == ("finished", "pass", "finished")
    assert (retest.old, retest.fresh, str(retest.outcome)) == ((4, 4), (0, 6), "named")
    assert retest.stopped == "The run was cancelled."


def test_a_run_until_a_verdict_of_two_guidances_is_run_again_in_turn(version):
    old, new, _ = ab(
        version,
        lambda is_new, key: passed(outcome="fail" if is_new and key == "s0" else "pass"),
        fail_on_regression=True,
        until_decided=True,
        max_trials=12,
    )
    assert (old.state, new.state, decisions(new)[-1]) == ("finished", "finished", "decided")
    assert rows(new) == [("s0", "in_turn", (0, 6), "named")]
