"""Database work that is tried again, on a fresh connection, when the server went away."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import IntegrityError, InterfaceError, OperationalError, connection, connections

from runs.db.retry import is_connection_lost, retry_when_lost
from runs.engine import batches, preparation, recording
from runs.models import Job, ProviderBatch, Run, Trial
from runs.workers import claims
from tests.model_server import Answer, ModelServer, serving
from tests.runs.carrying import claimed, passed, running
from tests.runs.engine.trials.batches import CITIES, KEY, batch_run, let_a_look_be_due

pytestmark = pytest.mark.django_db(transaction=True)


def lost() -> OperationalError:
    return OperationalError("the connection is closed")


class Flaky:
    """Loses the connection so many times, before or after the work is committed."""

    def __init__(self, times: int, error: type[Exception] = OperationalError) -> None:
        self.left = times
        self.error = error
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.left:
            self.left -= 1
            raise self.error("the connection is closed")
        return "done"


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_work_is_done_once_the_connection_is_back(error: type[Exception]):
    flaky = Flaky(2, error)
    assert retry_when_lost(flaky) == "done"
    assert flaky.asked == 3


def test_an_error_in_the_data_is_raised_at_once():
    flaky = Flaky(1, IntegrityError)
    with pytest.raises(IntegrityError):
        retry_when_lost(flaky)
    assert flaky.asked == 1


def test_it_gives_up_after_a_lease(settings):
    settings.LEASE_SECONDS = 1
    flaky, began = Flaky(1000), time.monotonic()
    with pytest.raises(OperationalError):
        retry_when_lost(flaky)
    assert time.monotonic() - began < 10
    assert flaky.asked > 2


def test_what_was_committed_before_the_answer_was_lost_counts():
    flaky = Flaky(1)
    assert retry_when_lost(flaky, committed=lambda: "stored before") == "stored before"
    assert flaky.asked == 1


def test_the_next_attempt_has_a_fresh_connection():
    connection.ensure_connection()
    before, seen = connection.connection, []

    def work() -> None:
        connection.ensure_connection()
        seen.append(connection.connection)
        if len(seen) == 1:
            raise lost()

    retry_when_lost(work)
    assert seen[0] is before
    assert seen[1] is not before


def test_a_wrong_statement_is_not_a_lost_connection():
    with pytest.raises(Exception, match="no_such_table") as raised, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")
    assert not is_connection_lost(raised.value)


@contextmanager
def answer_lost() -> Iterator[None]:
    """Lose the answer to this thread's next COMMIT, which the server has carried out."""
    database = connections["default"]
    commit = database.commit

    def losing() -> None:
        database.commit = commit
        commit()
        raise lost()

    database.commit = losing
    yield
    assert database.commit == commit, "nothing was committed"


def test_a_result_whose_commit_was_not_answered_is_stored_once():
    run = running(trials=3)
    first = claimed(run)
    with answer_lost():
        recorded, following = recording.record_and_claim(first, passed())
    assert recorded
    assert following is not None
    assert Trial.objects.get(pk=following.trial_id).starts == 1
    assert following.starts == 0
    run.refresh_from_db()
    assert (run.passed, run.open) == (1, 5)
    assert Trial.objects.filter(state="running").count() == 1


def test_the_last_result_closes_its_run_without_its_answer():
    run = running(trials=1)
    assert recording.record_result(claimed(run), passed())
    last = claimed(run)
    with answer_lost():
        assert recording.record_result(last, passed())
    run.refresh_from_db()
    assert (run.state, run.passed, run.open) == ("finished", 2, 0)


class LosesOnce:
    """Loses the connection at the first statement with these words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.lost = False

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if not self.lost and all(word in sql for word in self.words):
            self.lost = True
            raise lost()
        return execute(sql, *rest)


def test_a_trial_is_claimed_once_the_connection_is_back():
    run, claiming = running(trials=1), LosesOnce("UPDATE", "starts = starts + 1")
    with connection.execute_wrapper(claiming):
        claim = claims.claim_trial(run.pk)
    assert claiming.lost
    assert claim is not None
    assert [(each.pk, each.starts) for each in Trial.objects.filter(state="running")] == [(claim.trial_id, 1)]


def test_a_run_is_closed_once_the_connection_is_back():
    run = running(trials=1)
    assert recording.record_result(claimed(run), passed())
    closing = LosesOnce('UPDATE "runs_run"', '"outcome"')
    with connection.execute_wrapper(closing):
        assert recording.record_result(claimed(run), passed())
    assert closing.lost
    run.refresh_from_db()
    assert (run.state, run.outcome, run.passed) == ("finished", "pass", 2)


def test_a_place_whose_commit_was_not_answered_is_taken_once():
    run = running(trials=2, concurrency=2)
    with answer_lost():
        assert claims.acquire_slot(run, run.target) is not None
    assert Run.objects.get(pk=run.pk).slots.exclude(token="").count() == 1


def test_a_preparation_whose_claim_was_not_answered_is_held():
    run = running()
    Run.objects.filter(pk=run.pk).update(state="queued")
    with answer_lost():
        token = claims.claim_run(run.pk)
    run.refresh_from_db()
    assert (run.token, run.starts) == (token, 1)


@pytest.fixture
def models(monkeypatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("MODEL_KEY", KEY)
    with serving() as server:
        server.script.answer = lambda prompt: Answer(CITIES[prompt])
        yield server


def lose_connection(session: int) -> None:
    """Let this session's next write fail once: PostgreSQL ends it; on SQLite another writer holds the file."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [session])
        connection.close()
    else:
        name = str(connection.settings_dict["NAME"])
        other = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.5, other.close).start()


def session_to_lose() -> int:
    """Return the number of this thread's session; it does not wait for other writers of SQLite's file."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])
        cursor.execute("PRAGMA busy_timeout = 0")
        return 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("script", "state"),
    [
        pytest.param({"looks_until_done": 9}, "submitted", id="in progress"),
        pytest.param({}, "ended", id="ended"),
        pytest.param({"batch_status": "failed"}, "failed", id="failed"),
    ],
)
def test_a_batch_goes_on_if_the_connection_is_lost_while_it_is_polled(models, script, state):
    for name, value in script.items():
        setattr(models.script, name, value)
    run = batch_run(models)
    assert preparation.prepare_run(run.pk)
    let_a_look_be_due(run)
    session = session_to_lose()
    models.script.looking = lambda: lose_connection(session)
    assert batches.must_wait(run.pk) == (state == "submitted")
    assert ProviderBatch.objects.get(run=run).state == state
    waiting = [(job.attempts, job.token) for job in Job.objects.all()]
    assert waiting == ([(1, "")] if state == "submitted" else [])


def test_a_poll_whose_claim_was_not_answered_is_carried_out(models):
    run = batch_run(models)
    assert preparation.prepare_run(run.pk)
    let_a_look_be_due(run)
    with answer_lost():
        assert not batches.must_wait(run.pk)
    assert ProviderBatch.objects.get(run=run).state == "ended"
    assert not Job.objects.exists()
