"""Errors and cancelled trials that run again in the same run."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from evalhub.teams.models import AuditEvent
from evaluators.model import AgentResult
from runs.db.transactions import write_transaction
from runs.engine import lanes, preparation, recording
from runs.engine.recording import TrialResult
from runs.engine.retrying import RetryKind, retry_trials, retryable_counts, trials_to_run
from runs.errors import NotRetryable
from runs.models import Run, RunMeasure, Trial, TrialAttempt
from runs.results.digests import digests_of
from tests.builders import make_suite
from tests.runs.carrying import SHELL_AGENT, claimed, launch, passed, running, shell_target, suite_of

pytestmark = pytest.mark.django_db


def error(sentence: str = "No answer.", kind: str = "agent") -> TrialResult:
    return TrialResult(
        outcome="error",
        error=sentence,
        error_kind=kind,
        execution=AgentResult(cost_usd=0.5),
        detail={"notes": ["n"]},
    )


def counts(run: Run) -> tuple[str, str, int, int, int, int]:
    run.refresh_from_db()
    return run.state, run.outcome, run.open, run.passed, run.errors, run.cancelled


def carry_out(run: Run) -> None:
    if preparation.prepare_run(run.pk):
        lanes.run_lane(run.pk)


@pytest.fixture
def erred(version) -> Run:
    """Return a finished run with one pass and one error."""
    run = running(version)
    recording.record_result(claimed(run), passed())
    recording.record_result(claimed(run), error())
    return Run.objects.get(pk=run.pk)


def test_a_retry_runs_errors_only_and_closes_again(erred):
    assert retry_trials(erred, RetryKind.RETRY, by=None) == 1
    assert counts(erred) == ("queued", "", 1, 1, 0, 0)
    Run.objects.filter(pk=erred.pk).update(state="running")
    recording.record_result(claimed(erred), passed())
    assert counts(erred) == ("finished", "pass", 0, 2, 0, 0)
    assert [trial.outcome for trial in digests_of([erred.pk])[erred.pk].trials] == ["pass", "pass"]
    whole = RunMeasure.objects.get(run=erred, scenario=None, measure__name="pass")
    assert (whole.n, whole.mean) == (2, 1.0)
    assert AuditEvent.objects.filter(action="run.retry").count() == 1


def test_an_earlier_attempt_is_kept(erred):
    trial = erred.trial_set.get(outcome="error")
    Trial.objects.filter(pk=trial.pk).update(worker="host:1")
    started = trial.started
    retry_trials(erred, RetryKind.RETRY, by=None)
    kept = TrialAttempt.objects.get(trial=trial)
    assert (kept.number, kept.error, kept.error_kind, kept.worker) == (1, "No answer.", "agent", "host:1")
    assert (kept.started, kept.cost_usd, kept.detail) == (started, 0.5, {"notes": ["n"]})
    trial.refresh_from_db()
    assert (trial.state, trial.error, trial.worker, trial.started) == ("queued", "", "", None)
    erred.refresh_from_db()
    assert erred.cost_usd == 0.5


def test_the_time_between_close_and_retry_does_not_count(erred):
    day = timedelta(days=1)
    ended = timezone.now() - day
    Run.objects.filter(pk=erred.pk).update(started=ended - timedelta(seconds=30), finished=ended)
    erred.refresh_from_db()
    retry_trials(erred, RetryKind.RETRY, by=None)
    erred.refresh_from_db()
    assert timedelta(seconds=29) < timezone.now() - (erred.started or timezone.now()) < timedelta(seconds=60)


def test_a_second_retry_keeps_both_attempts(erred):
    retry_trials(erred, RetryKind.RETRY, by=None)
    Run.objects.filter(pk=erred.pk).update(state="running")
    recording.record_result(claimed(erred), error("RetryKind."))
    retry_trials(erred, RetryKind.RETRY, by=None)
    assert list(TrialAttempt.objects.values_list("number", "error")) == [(1, "No answer."), (2, "RetryKind.")]


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_retry_at_once_one_is_refused(erred):
    refused: list[str] = []

    def press() -> None:
        try:
            retry_trials(erred, RetryKind.RETRY, by=None)
        except NotRetryable as error:
            refused.append(str(error))
        finally:
            connections.close_all()

    second = threading.Thread(target=press)
    with write_transaction():
        retry_trials(erred, RetryKind.RETRY, by=None)
        second.start()
        second.join(0.5)
        assert second.is_alive(), "The second person must wait until the first has finished."
    second.join(30)
    assert refused == [f"Run {erred.pk} is in progress. Cancel it, or wait until it has finished."]
    assert counts(erred) == ("queued", "", 1, 1, 0, 0)
    assert TrialAttempt.objects.count() == 1


def test_errors_are_offered_without_a_query(erred, django_assert_num_queries):
    run = Run.objects.select_related("target").get(pk=erred.pk)
    with django_assert_num_queries(0):
        assert retryable_counts(run) == {"retry": 1}
    assert retry_trials(erred, RetryKind.RETRY, by=None) == 1


def test_trials_cancelled_after_equal_start_errors_are_retried(project):
    run = running(make_suite(project, ("a", "b", "c", "d", "e")))
    for _ in range(3):
        recording.record_result(claimed(run), error("No program.", "start"))
    assert counts(run) == ("finished", "error", 0, 0, 3, 2)
    assert retryable_counts(run) == {"retry": 5}
    assert retry_trials(run, RetryKind.RETRY, by=None) == 5
    assert counts(run) == ("queued", "", 5, 0, 0, 0)
    assert run.warnings == []


def test_retry_and_resume_name_different_trials(project):
    run = running(make_suite(project, ("a", "b", "c", "d", "e")))
    for _ in range(3):
        recording.record_result(claimed(run), error("No program.", "start"))
    by_hand = run.trial_set.filter(state="cancelled").first()
    run.trial_set.filter(pk=by_hand.pk).update(error="")
    run.refresh_from_db()
    assert retryable_counts(run) == {"retry": 4, "resume": 1}
    named = {kind: set(trials_to_run(run, kind).values_list("pk", flat=True)) for kind in RetryKind}
    assert named[RetryKind.RESUME] == {by_hand.pk}
    assert named[RetryKind.RETRY].isdisjoint(named[RetryKind.RESUME])
    assert retry_trials(run, RetryKind.RESUME, by=None) == 1


def test_a_cancelled_run_resumes_what_is_missing(version):
    run = running(version)
    recording.record_result(claimed(run), passed())
    recording.cancel_run(run.pk)
    run.refresh_from_db()
    assert retryable_counts(run) == {"resume": 1}
    assert retry_trials(run, RetryKind.RESUME, by=None) == 1
    assert counts(run) == ("queued", "", 1, 1, 0, 0)
    assert not run.cancel_requested
    assert not TrialAttempt.objects.exists()


def test_a_run_that_could_not_be_prepared_is_retried(version):
    run = launch(version).runs.get()
    token = preparation.claims.claim_run(run.pk)
    recording.fail_run(run.pk, token or "", "The target cannot work.", [])
    run.refresh_from_db()
    assert retryable_counts(run) == {"retry": 2}
    assert retry_trials(run, RetryKind.RETRY, by=None) == 2
    assert counts(run) == ("queued", "", 2, 0, 0, 0)
    assert run.error == ""


@pytest.mark.parametrize(
    ("again", "changes", "sentence"),
    [
        (RetryKind.RETRY, {"trigger": "confirm"}, "confirms a regression"),
        (RetryKind.RETRY, {"state": "running"}, "is in progress"),
        (RetryKind.RETRY, {"max_usd": 0.1}, "budget"),
        (RetryKind.RESUME, {}, "no cancelled trials to resume"),
    ],
    ids=["confirmation", "open", "budget spent", "nothing cancelled"],
)
def test_what_cannot_run_again_is_refused(erred, again, changes, sentence):
    Run.objects.filter(pk=erred.pk).update(**changes)
    before = counts(erred)
    with pytest.raises(NotRetryable, match=sentence):
        retry_trials(erred, again, by=None)
    assert counts(erred) == before


@pytest.mark.slow
def test_a_fixed_target_applies_if_no_result_is_left(project):
    version = suite_of(project, one={"prompt": "true"})
    target = shell_target(project, command_template="no-such-program {PROMPT}")
    run = launch(version, targets=[target.name]).runs.get()
    carry_out(run)
    assert counts(run)[:5] == ("finished", "error", 0, 0, 1) or run.error
    target.definition = {**target.definition, "command_template": SHELL_AGENT["command_template"]}
    target.save()
    retry_trials(run, RetryKind.RETRY, by=None)
    carry_out(run)
    assert counts(run) == ("finished", "pass", 0, 1, 0, 0)


def test_a_retry_refuses_a_changed_configuration(version):
    run = launch(version).runs.get()
    assert preparation.prepare_run(run.pk)
    recording.record_result(claimed(run), passed())
    recording.record_result(claimed(run), error())
    run.refresh_from_db()
    Run.objects.filter(pk=run.pk).update(fingerprint={**run.fingerprint, "provider_version": "0.1"})
    retry_trials(run, RetryKind.RETRY, by=None)
    assert not preparation.prepare_run(run.pk)
    assert counts(run) == ("finished", "pass", 0, 1, 0, 1)
    assert (
        "provider version changed since the run's other trials. Start a new run instead." in run.warnings[0]
    )


def test_a_retry_that_cannot_be_prepared_keeps_the_results(erred):
    Run.objects.filter(pk=erred.pk).update(started=erred.created)
    retry_trials(erred, RetryKind.RETRY, by=None)
    token = preparation.claims.claim_run(erred.pk)
    recording.fail_run(erred.pk, token or "", "The target cannot work.", [])
    assert counts(erred) == ("finished", "pass", 0, 1, 0, 1)
    assert erred.error == ""
    assert erred.warnings == ["The retry could not start: The target cannot work. 1 trial did not run."]
    assert retryable_counts(erred) == {"retry": 1}


def test_a_cancelled_retry_keeps_the_results(erred):
    Run.objects.filter(pk=erred.pk).update(started=erred.created)
    retry_trials(erred, RetryKind.RETRY, by=None)
    assert recording.cancel_run(erred.pk)
    assert counts(erred) == ("cancelled", "", 0, 1, 0, 1)
    assert [trial.state for trial in digests_of([erred.pk])[erred.pk].trials] == ["pass", "cancelled"]
