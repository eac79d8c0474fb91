"""Runs until a verdict: trials are added in looks, first to what is undecided."""

from __future__ import annotations

import itertools

import pytest

from runs.compare.baselines import set_baseline
from runs.compare.looks import extensions_of, looks_of
from runs.engine import recording
from runs.engine.reaper import reap
from runs.engine.retrying import RetryKind, extend_runs, retry_trials
from runs.errors import RequestError
from runs.launch.confirmation import start_confirmation
from runs.models import Alert, Run, Trial
from runs.models.run_options import RunOptions
from runs.workers import claims
from tests.builders import make_guidance
from tests.runs.carrying import passed, start
from tests.runs.looking import KEYS, carry, decisions, failing, ran, requested, suite, trials_by_key

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def version():
    return suite()


def test_without_a_change_it_stops_before_the_limit(version):
    ran(version, failing(), trials=12)
    run = ran(version, failing(), until_decided=True, max_trials=12)
    assert (run.state, run.trials, run.open, run.passed) == ("finished", 15, 0, 15)
    assert run.trial_set.filter(round=1, outcome="pass").count() == 15
    assert decisions(run) == ["go_on", "futile"]
    assert run.verdict not in ("regressed", "improved", "")


def test_a_tool_that_broke_is_found_early_and_alerted_once(version):
    ran(version, failing(), trials=12)
    run = ran(version, failing(*KEYS), until_decided=True, max_trials=12)
    assert (run.verdict, run.trials, decisions(run)) == ("regressed", 15, ["decided"])
    assert [alert.run for alert in Alert.objects.all()] == [run]


def test_only_a_broken_scenario_gets_further_trials(version):
    ran(version, failing(), trials=4)
    run = ran(version, failing("export"), until_decided=True, trials=4, max_trials=40)
    assert run.verdict == "regressed"
    assert trials_by_key(run) == {"add": 4, "create": 4, "delete": 4, "export": 16, "list": 4}
    last = looks_of(run)[-1]
    assert (last.trials, last.most) == ((20, 32), (4, 16))


def test_the_verdict_has_the_level_of_its_look(version):
    baseline = str(ran(version, failing(), trials=3).pk)
    once = ran(version, failing("add", "list"), trials=3, baseline=baseline)
    given = {"trials": 3, "baseline": baseline, "until_decided": True}
    run = ran(version, failing("add", "list"), max_trials=3, **given)
    assert (once.verdict, run.verdict) == ("regressed", "regressed")
    # The same trials, found before all of the information was there, aren't enough.
    early = ran(version, failing("add", "list"), max_trials=30, **given)
    assert looks_of(early)[0].decision == "go_on"
    assert looks_of(early)[0].p == looks_of(run)[0].p < looks_of(run)[0].level
    assert looks_of(early)[0].p > looks_of(early)[0].level


def test_the_limit_of_trials_ends_it(version):
    ran(version, failing(), trials=6)
    turns = itertools.cycle(("pass", "fail"))
    run = ran(
        version,
        lambda _, key: passed(outcome=next(turns) if key == "add" else "pass"),
        until_decided=True,
        trials=2,
        max_trials=4,
    )
    assert decisions(run) == ["go_on", "go_on", "limit"]
    assert (run.trials, run.trial_set.count(), run.verdict) == (10, 20, "too_little")


def test_the_budget_ends_it(version):
    ran(version, failing(), trials=12)
    run = ran(version, failing(cost_usd=0.1), until_decided=True, max_trials=12, max_usd=1.6)
    assert (run.state, run.passed, decisions(run)) == ("finished", 15, ["go_on", "limit"])
    assert run.cost_usd == pytest.approx(1.6)
    assert "budget of $1.60 was reached" in looks_of(run)[-1].reason


def test_without_a_baseline_nothing_is_added_and_the_run_says_so(version):
    run = ran(version, failing(), until_decided=True, max_trials=12)
    assert (run.trials, run.looks, run.verdict) == (15, [], "")
    assert "no baseline to compare with" in run.warnings[-1]


def test_a_cancel_stops_the_looks(version):
    ran(version, failing(), trials=12)
    launch = requested(version, until_decided=True, max_trials=12)
    run = launch.runs.get()
    carry([run], failing(), most=17)
    assert Run.objects.get(pk=run.pk).open == 13
    recording.cancel_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.passed, run.cancelled, decisions(run)) == ("finished", 15, 0, ["go_on", "limit"])
    assert run.trial_set.filter(state="cancelled").count() == 13
    assert looks_of(run)[-1].reason == f"Run {run.pk} was cancelled."


def test_a_lost_worker_s_look_is_made_by_the_tick_once(version):
    ran(version, failing(), trials=12)
    run = requested(version, until_decided=True, max_trials=12).runs.get()
    carry([run], failing(), most=14)
    # The worker records the last trial of the first look and is lost before the look.
    claim = claims.claim_trial(run.pk)
    assert claim is not None
    Trial.objects.filter(pk=claim.trial_id).update(state="finished", outcome="pass")
    Run.objects.filter(pk=run.pk).update(open=0, passed=15)
    reap()
    reap()
    run.refresh_from_db()
    assert (run.state, run.trials, run.open, decisions(run)) == ("running", 15, 15, ["go_on"])
    assert Trial.objects.filter(run=run).values("scenario", "index").distinct().count() == 30


def test_a_worker_lost_between_the_last_look_and_the_close_changes_nothing(version):
    ran(version, failing(), trials=12)
    run = ran(version, failing(*KEYS), until_decided=True, max_trials=12)
    before = (run.looks, run.verdict)
    Run.objects.filter(pk=run.pk).update(state="running", verdict="", rollups_at=None)
    reap()
    run.refresh_from_db()
    assert (run.looks, run.verdict, run.state) == (*before, "finished")


def test_errors_that_run_again_are_looked_at_again(version):
    ran(version, failing(), trials=12)
    run = requested(version, until_decided=True, max_trials=12).runs.get()
    carry([run], lambda _, key: passed(outcome="error", error="away") if key == "add" else failing()(_, key))
    run.refresh_from_db()
    assert (run.state, run.errors) == ("finished", 3)
    retry_trials(run, RetryKind.RETRY, by=None, wake=False)
    start(run)
    carry([run], failing())
    run.refresh_from_db()
    assert (run.state, run.errors) == ("finished", 0)
    assert decisions(run)[-1] == "futile"
    assert looks_of(run)[-1].trials[1] == run.trial_set.count()


def test_a_run_of_errors_gets_no_further_trials(version):
    ran(version, failing(), trials=12)
    run = ran(
        version,
        lambda _, key: passed(outcome="error", error=key) if key in ("add", "list") else passed(),
        until_decided=True,
        max_trials=12,
    )
    assert (run.trials, run.verdict, decisions(run)) == (15, "", ["limit"])
    assert "a third or more" in looks_of(run)[-1].reason


def test_the_baseline_of_the_first_look_stays_that_of_the_run(version):
    base = ran(version, failing(), trials=12)
    other = ran(version, failing("list"), trials=12)
    set_baseline(base, by=None)
    run = requested(version, until_decided=True, max_trials=12).runs.get()
    carry([run], failing("add"), most=16)
    set_baseline(other, by=None)
    carry([run], failing("add"))
    run.refresh_from_db()
    assert (run.baseline, run.verdict) == (base, "regressed")
    assert {each.against for each in looks_of(run)} == {base.pk}


def test_people_are_notified_once_at_the_end(version):
    ran(version, failing(), trials=12)
    run = requested(version, until_decided=True, trials=2, max_trials=12).runs.get()
    carry([run], failing("add"), most=10)
    assert not Alert.objects.exists()
    carry([run], failing("add"))
    assert Alert.objects.filter(run=run).count() == 1


def ab(version, result, **options):
    guidance = [make_guidance(version.suite, name) for name in ("poor", "good")]
    launch = requested(version, guidance=guidance, until_decided=True, **options)
    old, new = launch.runs.order_by("pk")
    carry([old, new], lambda run, key: result(run.pk == new.pk, key))
    return Run.objects.get(pk=old.pk), Run.objects.get(pk=new.pk)


def test_both_sides_of_an_ab_run_until_decided(version):
    old, new = ab(version, lambda is_new, key: passed(outcome="pass" if is_new else "fail"), max_trials=12)
    assert (old.state, new.state, new.baseline_id, new.verdict) == (
        "finished",
        "finished",
        old.pk,
        "improved",
    )
    assert (old.looks, decisions(new)) == ([], ["decided"])
    assert old.trials == new.trials == 15


def test_both_sides_of_an_ab_without_a_difference_stop_together(version):
    old, new = ab(version, lambda is_new, key: passed(), max_trials=12)
    assert decisions(new) == ["go_on", "futile"]
    assert trials_by_key(old) == trials_by_key(new) == dict.fromkeys(KEYS, 6)


def test_arms_without_results_do_not_miss_a_baseline(version):
    both = ab(version, lambda *_: passed(outcome="error", error="away"), max_trials=12)
    assert [(run.state, run.warnings) for run in both] == [("finished", [])] * 2


def test_a_cancelled_side_ends_the_looks_of_the_other(version):
    guidance = [make_guidance(version.suite, name) for name in ("poor", "good")]
    launch = requested(version, guidance=guidance, until_decided=True, max_trials=12)
    old, new = launch.runs.order_by("pk")
    carry([new], failing())
    assert Run.objects.get(pk=new.pk).state == "running"
    recording.cancel_run(old.pk)
    reap()
    new.refresh_from_db()
    assert (new.state, new.trials, new.passed) == ("finished", 15, 15)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_trials": 5}, "Add --until-decided"),
        ({"until_decided": True, "trials": 9, "max_trials": 5}, "The first look takes 9 trials"),
    ],
)
def test_plans_that_cannot_be_followed_are_refused(version, options, why):
    with pytest.raises(RequestError, match=why):
        requested(version, **options)


def test_three_versions_of_guidance_are_refused(version):
    guidance = [make_guidance(version.suite, str(n)) for n in range(3)]
    with pytest.raises(RequestError, match="compares two versions"):
        requested(version, guidance=guidance, until_decided=True)


def test_a_confirmation_of_a_run_until_a_verdict_has_a_plan_of_its_own(version):
    for _ in range(3):
        ran(version, failing(), trials=12)
    run = ran(version, failing(*KEYS), until_decided=True, max_trials=12)
    Run.objects.filter(pk=run.baseline_id).update(tool_version="tool 1.0")
    launch = start_confirmation(Alert.objects.get(run=run), by=None)
    options = [RunOptions.model_validate(each.options) for each in launch.runs.all()]
    assert options
    assert not any(each.until_decided or each.max_trials for each in options)


def test_the_looks_at_a_comparison_continue_those_before(version):
    base, new = (ran(version, failing(*broken), trials=3) for broken in ((), ("add",)))
    extend_runs([base, new], KEYS, 12, until_decided=True, by=None)
    for run in (base, new):
        start(run)
    carry([base, new], lambda run, key: failing(*(("add",) if run == new else ()))(run, key))
    (extension,) = extensions_of([base, new])
    looks = extension.looks
    # The first look at the comparison spent its whole level, so this one is the second.
    assert looks[0].trials == (30, 30)
    assert looks[0].level == pytest.approx(0.0089, abs=0.0002)
    assert [each.level for each in looks] == sorted((each.level for each in looks), reverse=True)
    assert looks[-1].decision == "decided"


@pytest.fixture
def lift(version):
    """Return a launch of a lift: the runs without the skill, with it, and with its previous version."""
    arms = [make_guidance(version.suite, name) for name in ("no skill", "skill", "older")]
    return requested(version, guidance=arms, until_decided=True, experiment=True, lift=True, max_trials=12)


def by_arm(*broken):
    """Return what trials end as when each arm has broken scenarios."""
    return lambda run, key: failing(*dict(zip(ARMS, broken, strict=True))[run.guidance.name])(run, key)


ARMS = ("no skill", "skill", "older")


def arms_of(launch):
    return list(launch.runs.select_related("guidance").order_by("pk"))


def test_the_third_arm_of_a_lift_gets_the_looks_trials_and_no_look(lift):
    carry(arms_of(lift), by_arm((), (), KEYS))
    without, skill, older = arms_of(lift)
    assert [each.state for each in (without, skill, older)] == ["finished"] * 3
    assert decisions(skill) == ["go_on", "futile"]
    assert (without.looks, older.looks, looks_of(skill)[-1].against) == ([], [], without.pk)
    assert trials_by_key(without) == trials_by_key(skill) == trials_by_key(older) == dict.fromkeys(KEYS, 6)


def test_the_third_arm_changes_no_level_of_the_looks(lift, version):
    carry(arms_of(lift), by_arm(KEYS[:2], (), KEYS))
    arms = [make_guidance(version.suite, name) for name in ("none of two", "one of two")]
    two = requested(version, guidance=arms, until_decided=True, experiment=True, max_trials=12)
    sides = dict(zip(arms, (KEYS[:2], ()), strict=True))
    carry(arms_of(two), lambda run, key: failing(*sides[run.guidance])(run, key))
    looks = [
        [(each.p, each.level, each.decision) for each in looks_of(arms_of(each)[1])] for each in (lift, two)
    ]
    assert looks[0] == looks[1] != []


def test_a_cancelled_third_arm_lets_the_others_go_on(lift):
    carry(arms_of(lift), by_arm((), (), ()), most=20)
    recording.cancel_run(arms_of(lift)[2].pk)
    assert arms_of(lift)[2].state == "cancelled"
    carry(arms_of(lift)[:2], by_arm((), (), ()))
    without, skill, _ = arms_of(lift)
    assert (without.state, skill.state, skill.trial_set.count()) == ("finished", "finished", 30)
    assert decisions(skill) == ["go_on", "futile"]


def test_a_third_arm_cancelled_after_the_others_ended_lets_them_go_on(lift):
    carry(arms_of(lift)[:2], by_arm((), (), ()))
    assert [each.state for each in arms_of(lift)] == ["running"] * 3
    recording.cancel_run(arms_of(lift)[2].pk)
    assert [(each.state, each.open) for each in arms_of(lift)] == [
        *(("running", 15), ("running", 15)),
        ("cancelled", 0),
    ]


def test_a_third_arm_with_too_many_errors_gets_no_further_trials(lift):
    carry(
        arms_of(lift),
        lambda run, key: (
            passed(outcome="error", error="away") if run.guidance.name == "older" else failing()(run, key)
        ),
    )
    assert [(each.state, each.trial_set.count()) for each in arms_of(lift)] == [
        *(("finished", 30), ("finished", 30)),
        ("finished", 15),
    ]
