"""Grading again when the worker or the database goes away meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from runs.engine.reaper import reap
from runs.engine.stored_trials.reassessing import request_reassessment, run_reassessment
from runs.models import ReassessedTrial, Reassessment
from runs.workers.claims import lease_end, new_token
from runs.workers.heartbeat import heartbeat
from tests.runs import carried

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def requested() -> Reassessment:
    """Return a request to grade a trial again that no worker has taken."""
    gates = [{"type": "file_exists", "path": "out.txt"}]
    trial = carried.one(carried.shell_project(), prompt="echo done > out.txt", criteria={"gates": gates})
    return request_reassessment(trial.run, "grade", by=None, wakes=False)


def taken(requested: Reassessment) -> str:
    """Let another process take a request; return its token."""
    token = new_token()
    assert Reassessment.take(requested.pk, "elsewhere:1", token=token, lease_until=lease_end())
    return token


def test_a_lost_worker_leaves_no_request_open(requested):
    taken(requested)
    reap()
    requested.refresh_from_db()
    assert requested.finished is None
    Reassessment.objects.update(lease_until=1.0)
    reap()
    requested.refresh_from_db()
    assert requested.finished is not None
    assert requested.error == "Its worker was lost. Request it again."


def test_a_worker_keeps_what_it_is_at(requested, settings):
    settings.LEASE_SECONDS = 1
    with heartbeat.holding(taken(requested), "request"):
        time.sleep(2)
        reap()
    requested.refresh_from_db()
    assert requested.finished is None


def run_and_lose_at(statement: str, requested: Reassessment) -> None:
    """Carry a request out; its lease ends just before this SQL runs."""

    def lose(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if statement in sql:
            Reassessment.objects.filter(finished=None).update(lease_until=1.0)
            reap()
        return execute(sql, *rest)

    with connection.execute_wrapper(lose):
        run_reassessment(requested.pk)
    requested.refresh_from_db()


def test_a_worker_that_was_thought_lost_changes_no_result(requested):
    run_and_lose_at('INSERT INTO "runs_reassessedtrial"', requested)
    assert requested.error == "Its worker was lost. Request it again."


def test_a_worker_that_was_thought_lost_stores_nothing_and_stops(requested):
    run_and_lose_at('JOIN "runs_transcriptrecord"', requested)
    assert requested.error == "Its worker was lost. Request it again."
    assert not ReassessedTrial.objects.exists()


class LosesOnce:
    """Loses the connection at the first statement of each kind."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = list(kinds)

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        for kind in self.kinds:
            if sql.startswith(kind):
                self.kinds.remove(kind)
                raise OperationalError("the connection is closed")
        return execute(sql, *rest)


def test_a_lost_connection_costs_no_work(requested):
    losing = LosesOnce('INSERT INTO "runs_reassessedtrial"', 'UPDATE "runs_reassessment" SET "error"')
    with connection.execute_wrapper(losing):
        run_reassessment(requested.pk)
    assert losing.kinds == []
    requested.refresh_from_db()
    assert (requested.finished is not None, requested.error) == (True, "")
    assert ReassessedTrial.objects.filter(reassessment=requested).count() == 2
