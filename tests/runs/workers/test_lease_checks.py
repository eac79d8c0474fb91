"""After a time in which nobody could renew leases, expired ones are not taken at once."""

from __future__ import annotations

import pytest

from runs.db.transactions import database_now
from runs.engine.reaper import GAP_SECONDS, RENEWING_SECONDS, may_take_expired, reap
from runs.models import LeaseCheck, Trial
from runs.workers import claims
from tests.runs.carrying import claimed, lose, running

pytestmark = pytest.mark.django_db


def let_pass(*, since_check: float, since_gap: float) -> None:
    """Let leases have been checked so many seconds ago."""
    now = database_now()
    LeaseCheck.objects.update_or_create(
        pk=1, defaults={"checked": now - since_check, "resumed": now - since_gap}
    )


def test_a_new_evalhub_takes_what_is_lost_at_once():
    assert may_take_expired()


def test_workers_renew_their_leases_before_a_check_after_a_gap_takes_them():
    claim = claimed(running())
    lose(claim)
    let_pass(since_check=GAP_SECONDS + 1, since_gap=3600)
    assert not reap()
    assert Trial.objects.get(pk=claim.trial_id).token == claim.token
    # Its worker has the database again.
    assert claims.renew_claims(trials=[claim.token], slots=[], runs=[]) == set()
    let_pass(since_check=5, since_gap=RENEWING_SECONDS + 1)
    assert reap()
    assert Trial.objects.get(pk=claim.trial_id).token == claim.token


def test_what_nobody_renews_is_taken_after_that():
    claim = claimed(running())
    lose(claim)
    let_pass(since_check=5, since_gap=RENEWING_SECONDS - 1)
    assert not reap()
    let_pass(since_check=5, since_gap=RENEWING_SECONDS + 1)
    assert reap()
    assert Trial.objects.get(pk=claim.trial_id).state == "queued"


def test_a_lease_shorter_than_the_time_to_renew_is_enough(settings):
    settings.LEASE_SECONDS = 2
    let_pass(since_check=5, since_gap=3)
    assert may_take_expired()
