"""A run that somebody stops, in each of its states."""

from __future__ import annotations

import pytest

from runs.engine import preparation, recording
from runs.engine.reaper import reap
from runs.engine.recording import TrialResult
from runs.models import Run
from runs.workers import claims
from tests.runs.carrying import claimed, lapse, launch, lose, lose_preparations, passed, running

pytestmark = pytest.mark.django_db


def state(run: Run) -> tuple[str, int, int]:
    run.refresh_from_db()
    return run.state, run.open, run.cancelled


def test_a_queued_run_is_over_at_once():
    run = launch().runs.get()
    assert recording.cancel_run(run.pk)
    assert state(run) == ("cancelled", 0, 2)
    assert run.finished is not None
    assert not preparation.prepare_run(run.pk)


def test_a_run_that_is_being_prepared_never_starts(settings):
    run = launch().runs.get()
    token = claims.claim_run(run.pk)
    recording.cancel_run(run.pk)
    assert token in claims.cancelled_tokens([token or ""])
    context = preparation.load_run(run.pk)
    # Nothing public stops between a preparation and its start.
    assert not preparation._start(  # noqa: SLF001
        run.pk, token or "", context, "", "", []
    )
    assert state(run) == ("cancelled", 0, 2)
    assert run.finished is not None


def test_a_cancelled_run_whose_preparation_is_lost_is_over():
    run = launch().runs.get()
    claims.claim_run(run.pk)
    recording.cancel_run(run.pk)
    lapse(run)
    reap()
    assert state(run) == ("cancelled", 0, 2)


def test_a_cancelled_run_with_a_lost_preparation_is_no_error():
    run = launch().runs.get()
    lose_preparations(run, claims.MOST_STARTS - 1)
    claims.claim_run(run.pk)
    recording.cancel_run(run.pk)
    lapse(run)
    reap()
    assert state(run) == ("cancelled", 0, 2)
    assert run.error == ""


def test_a_running_run_waits_for_its_running_trials_only():
    run = running()
    claim = claimed(run)
    recording.cancel_run(run.pk)
    assert state(run) == ("running", 1, 1)
    assert claims.cancelled_tokens([claim.token]) == {claim.token}
    assert recording.record_result(claim, TrialResult(outcome="", cancelled=True))
    assert state(run) == ("cancelled", 0, 2)


def test_what_has_ended_before_is_kept():
    run = running()
    recording.record_result(claimed(run), passed())
    recording.cancel_run(run.pk)
    assert state(run) == ("cancelled", 0, 1)
    assert run.passed == 1


def test_a_cancelled_trial_whose_worker_is_lost_is_not_run_again():
    run = running()
    claim = claimed(run)
    recording.cancel_run(run.pk)
    lose(claim)
    reap()
    assert state(run) == ("cancelled", 0, 2)


def test_a_run_that_is_over_cannot_be_cancelled():
    run = launch().runs.get()
    recording.cancel_run(run.pk)
    assert not recording.cancel_run(run.pk)
