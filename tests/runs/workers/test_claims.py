"""Who works on what."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from runs.engine import recording
from runs.engine.reaper import reap
from runs.models import Run, RunSlot, TargetSlot, Trial
from runs.workers import claims
from runs.workers.heartbeat import Activity, write_activity
from runs.workers.worker_registry import worker_name
from tests.builders import make_project, make_suite, make_target
from tests.runs.carrying import NO_GATES, claimed, lapse, launch, lose, lose_preparations, passed, running

pytestmark = pytest.mark.django_db


def in_threads(work: Any, times: int) -> list[Any]:
    def once(_: int) -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(once, range(times)))


@pytest.mark.django_db(transaction=True)
def test_threads_never_share_a_trial():
    run = running(trials=30)

    def take_all() -> list[int]:
        taken = []
        while (claim := claims.claim_trial(run.pk)) is not None:
            taken.append(claim.trial_id)
        return taken

    taken = [pk for each in in_threads(take_all, 4) for pk in each]
    assert sorted(taken) == sorted(run.trial_set.values_list("pk", flat=True))


@pytest.mark.django_db(transaction=True)
def test_only_one_of_many_prepares_a_run():
    run = launch().runs.get()
    tokens = in_threads(lambda: claims.claim_run(run.pk), 4)
    assert sum(token is not None for token in tokens) == 1


def test_trials_are_claimed_in_order_all_scenarios_once_first():
    run = running(trials=2)
    positions = [Trial.objects.get(pk=claimed(run).trial_id).position for _ in range(4)]
    assert positions == [0, 1, 2, 3]


def test_a_claim_counts_the_earlier_starts():
    run = running()
    lose(claimed(run))
    reap()
    assert claimed(run).starts == 1


def test_a_claim_names_its_worker_until_it_is_lost():
    run = running()
    claim = claimed(run)
    write_activity([Activity(claim.trial_id, claim.token, "taskmgr list", 7, 0)])
    assert at_work(claim) == (worker_name(), "taskmgr list", 7, 0)
    lose(claim)
    reap()
    assert at_work(claim) == ("", "", None, None)


def test_a_result_clears_the_activity_and_keeps_the_worker():
    run = running()
    claim = claimed(run)
    write_activity([Activity(claim.trial_id, claim.token, "taskmgr list", 7, 0)])
    recording.record_result(claim, passed())
    assert at_work(claim) == (worker_name(), "", None, None)
    write_activity([Activity(claim.trial_id, claim.token, "too late", 8)])
    assert at_work(claim) == (worker_name(), "", None, None)


def test_what_an_agent_does_under_an_old_token_is_not_written():
    run = running()
    old = claimed(run)
    lose(old)
    reap()
    new = claimed(run)
    write_activity(
        [Activity(new.trial_id, new.token, "new", 1, 2), Activity(old.trial_id, old.token, "old", 2)]
    )
    assert at_work(new) == (worker_name(), "new", 1, 2)


def test_unstorable_characters_are_removed():
    claim = claimed(running())
    write_activity([Activity(claim.trial_id, claim.token, "a\x00b\ud800", None)])
    assert at_work(claim)[1] == "a\ufffdb?"


def at_work(claim):
    """Return who carries the claim's trial, and what its agent does, how often, and what that came to."""
    return Trial.objects.values_list("worker", "activity", "calls_so_far", "activity_exit_code").get(
        pk=claim.trial_id
    )


def test_a_result_under_an_old_token_is_thrown_away():
    run = running()
    old = claimed(run)
    lose(old)
    reap()
    new = claimed(run)
    assert new.trial_id == old.trial_id
    assert not recording.record_result(old, passed(outcome="fail"))
    assert recording.record_result(new, passed())
    assert not recording.record_result(new, passed())
    run.refresh_from_db()
    assert (run.passed, run.failed, run.open) == (1, 0, 1)


def test_a_valid_lease_is_left_alone():
    run = running()
    claim = claimed(run)
    reap()
    assert Trial.objects.get(pk=claim.trial_id).token == claim.token


def test_a_trial_that_lost_its_worker_too_often_is_an_error():
    run = running()
    claim = claimed(run)
    lose(claim, starts=claims.MOST_STARTS)
    reap()
    trial = Trial.objects.get(pk=claim.trial_id)
    assert (trial.state, trial.outcome, trial.error_kind) == ("finished", "error", "lost")
    assert "lost 5 times" in trial.error


def test_a_lost_preparation_goes_back_to_the_queue():
    run = launch().runs.get()
    token = claims.claim_run(run.pk)
    lapse(run)
    reap()
    run.refresh_from_db()
    assert (run.state, run.token) == ("queued", "")
    assert not recording.fail_run(run.pk, token or "", "Too late.", [])


def test_a_run_whose_preparation_is_lost_often_is_an_error():
    run = launch().runs.get()
    lose_preparations(run, claims.MOST_STARTS - 1)
    assert Run.objects.get(pk=run.pk).state == "queued"
    lose_preparations(run, 1)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.open, run.cancelled) == ("finished", "error", 0, 2)
    assert "lost 5 times" in run.error
    assert claims.claim_run(run.pk) is None


def test_a_preparation_that_is_given_back_counts_as_none():
    run = launch().runs.get()
    for _ in range(claims.MOST_STARTS):
        claims.release_run(run.pk, claims.claim_run(run.pk) or "")
    lose_preparations(run, 1)
    assert Run.objects.get(pk=run.pk).state == "queued"


def test_a_run_has_as_many_places_as_its_concurrency():
    run = running(concurrency=2)
    slots = [claims.acquire_slot(run, run.target) for _ in range(3)]
    assert [slot is not None for slot in slots] == [True, True, False]


def test_a_target_caps_all_runs_together():
    project = make_project()
    target = make_target(project, workers=1)
    claims.follow_target(target)
    version = make_suite(project, **NO_GATES)
    first, second = running(version), running(version)
    slot = claims.acquire_slot(first, target)
    assert slot is not None
    assert claims.acquire_slot(second, target) is None
    free = RunSlot.objects.filter(run=second, token="")
    assert free.count() == 1, "the run slot is given back where the target is full"
    claims.release_slot(slot)
    assert claims.acquire_slot(second, target) is not None


def test_a_place_whose_holder_is_lost_is_free_again():
    run = running(concurrency=1)
    claims.acquire_slot(run, run.target)
    RunSlot.objects.filter(run=run).update(lease_until=1.0)
    assert claims.acquire_slot(run, run.target) is not None


def test_giving_a_lost_place_back_leaves_its_new_holder_alone():
    run = running(concurrency=1)
    old = claims.acquire_slot(run, run.target)
    RunSlot.objects.filter(run=run).update(lease_until=1.0)
    new = claims.acquire_slot(run, run.target)
    assert old is not None
    assert new is not None
    claims.release_slot(old)
    assert RunSlot.objects.get(run=run).token == new.token


def test_fewer_workers_of_a_target_mean_fewer_places():
    target = make_target(make_project(), workers=3)
    claims.follow_target(target)
    target.workers = 1
    claims.follow_target(target)
    assert TargetSlot.objects.filter(target=target).count() == 1


def test_renewing_returns_lost_claims():
    run = running(concurrency=1)
    claim, slot = claimed(run), claims.acquire_slot(run, run.target)
    assert slot is not None
    lost = claims.renew_claims(trials=[claim.token, "gone"], slots=[slot.token], runs=["away"])
    assert lost == {"gone", "away"}


def test_renewing_prolongs_a_lease():
    run = running()
    claim = claimed(run)
    Trial.objects.filter(pk=claim.trial_id).update(lease_until=5.0)
    claims.renew_claims(trials=[claim.token], slots=[], runs=[])
    assert Trial.objects.get(pk=claim.trial_id).lease_until > 1e9
