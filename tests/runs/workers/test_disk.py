"""Full disks and stores that are away: what goes back to the queue, its message, and that nothing is claimed meanwhile."""

from __future__ import annotations

import errno

import pytest

from runs.db import disk
from runs.db.disk import DiskFull, cannot_store
from runs.engine import lanes, preparation, run_here
from runs.errors import ProviderError
from runs.results.files.artifacts import store_away
from runs.workers import claims
from tests.runs.carrying import beside, claimed, launch, running
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
ENOUGH_FOR_NOBODY = 10**9
"""Megabytes that no disk of a test machine has."""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_errors_of_full_and_failing_disks_are_recognised(number: int):
    error = ProviderError("It cannot start.")
    error.__cause__ = OSError(number, "no room", "/data/work/trial-1/file")
    assert "Disk full at /data/work/trial-1: " in str(cannot_store(error))


def test_other_errors_are_not_those_of_a_disk():
    assert cannot_store(OSError(errno.ENOENT, "missing", "/data/file")) is None
    assert cannot_store(ValueError("wrong")) is None


def test_commands_have_room_before_the_first_work_folder_is_made(settings, tmp_path):
    settings.WORK_DIR = tmp_path / "later" / "work"
    disk.check_room_for_commands()


def test_a_trial_goes_back_three_times_without_a_start():
    run = running(trials=1)
    for _ in range(claims.MAX_REQUEUES):
        claim = claimed(run)
        assert claim.starts == 0
        assert claims.requeue_trial(claim)
    assert not claims.requeue_trial(claimed(run))


def test_a_preparation_goes_back_three_times_without_a_start():
    run = launch().runs.get()
    for _ in range(claims.MAX_REQUEUES):
        assert claims.requeue_run(run.pk, claims.claim_run(run.pk) or "")
        run.refresh_from_db()
        assert (run.state, run.starts) == ("queued", 0)
    assert not claims.requeue_run(run.pk, claims.claim_run(run.pk) or "")


def test_the_fourth_full_disk_is_an_error_that_says_so():
    run = running(trials=1)
    claim = claimed(run)
    run.trial_set.filter(pk=claim.trial_id).update(put_back=claims.MAX_REQUEUES)

    full = DiskFull(disk.describe_blocking("/data/work", "No space left on device"))
    lanes.requeue_or_record_error(claim, full, is_over=lambda: True)
    trial = run.trial_set.get(pk=claim.trial_id)
    assert (trial.state, trial.outcome, trial.error_kind) == ("finished", "error", "disk")
    assert "Disk full at /data/work: No space left on device." in trial.error
    assert "tried 4 times" in trial.error


def test_a_store_that_stays_away_is_an_error_of_its_own():
    run = running(trials=1)
    claim = claimed(run)
    run.trial_set.filter(pk=claim.trial_id).update(put_back=claims.MAX_REQUEUES)

    error = RuntimeError("the trial ended")
    error.__cause__ = store_away(ConnectionError())
    problem = cannot_store(error)
    assert problem is not None
    lanes.requeue_or_record_error(claim, problem, is_over=lambda: True)
    trial = run.trial_set.get(pk=claim.trial_id)
    assert (trial.outcome, trial.error_kind) == ("error", "store")
    assert trial.error.startswith("The file store can't be reached: ConnectionError. Check EVALHUB_STORE;")


def test_nothing_is_claimed_while_there_is_too_little_room(settings):
    settings.MIN_FREE_MB = ENOUGH_FOR_NOBODY
    run, queued = running(trials=1), launch().runs.get()
    lanes.run_lane(run.pk)
    assert not preparation.prepare_run(queued.pk)
    assert not run.trial_set.exclude(state="queued").exists()
    queued.refresh_from_db()
    assert (queued.state, queued.starts) == ("queued", 0)


def test_a_run_in_this_process_reports_once_why_it_waits(settings, caplog):
    settings.MIN_FREE_MB = ENOUGH_FOR_NOBODY
    started = launch(trials=1)
    with beside(lambda: run_here.run_here(started)):
        try:
            until(lambda: "Disk full at " in caplog.text)
        finally:
            settings.MIN_FREE_MB = 0
    assert caplog.text.count("Disk full at ") == 1
    assert started.runs.get().state == "finished"
