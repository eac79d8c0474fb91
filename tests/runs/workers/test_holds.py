"""Launches that another process executes by itself."""

from __future__ import annotations

import pytest

from runs.db.transactions import database_now
from runs.engine import run_here
from runs.engine.reaper import take_abandoned
from runs.engine.retrying import RetryKind, retry_trials, retryable_counts
from runs.errors import NotRetryable
from runs.models import Launch, Run
from runs.workers import claims, fair_share
from tests.runs.carrying import launch, start, suite_of

pytestmark = pytest.mark.django_db(transaction=True)
PLAIN = {"criteria": {"gates": []}}
NEEDS = {"criteria": {"gates": [], "tool": {"binary": "mt", "env": {"TOKEN": "${NOWHERE_SET}"}}}}


def held(project, *, seconds: float, **scenarios) -> Run:
    """Return a queued run whose launch another process holds for so long."""
    run = launch(suite_of(project, **(scenarios or {"create": PLAIN}))).runs.get()
    Launch.objects.update(held_by="elsewhere:7:ab", held_until=database_now() + seconds)
    return Run.objects.select_related("launch", "target", "project").get(pk=run.pk)


@pytest.mark.parametrize("seconds", [60, -1], ids=["alive", "gone"])
def test_only_its_process_prepares_and_runs_it(project, seconds):
    run = held(project, seconds=seconds)
    assert claims.claim_run(run.pk) is None and fair_share.next_preparation(run.pk) is None
    start(run)
    assert fair_share.next_slot() is None
    Launch.objects.update(held_by=claims.own_hold())
    assert fair_share.next_slot() is not None


def test_workers_take_over_what_they_have_the_variables_for(project):
    run = held(project, seconds=60)
    take_abandoned()
    assert Launch.objects.get().held_by
    Launch.objects.update(held_until=0)
    take_abandoned()
    assert Launch.objects.get().held_by == "" and claims.claim_run(run.pk)


def test_a_variable_that_only_the_command_had_keeps_it_waiting(project):
    held(project, seconds=-1, create=NEEDS)
    take_abandoned()
    assert Launch.objects.get().held_by == "elsewhere:7:ab"


def test_it_is_resumed_in_another_process(project):
    run = held(project, seconds=-1)
    assert retryable_counts(run) == {RetryKind.RESUME: 1}
    assert retry_trials(run, RetryKind.RESUME, by=None, wake=False) == 1
    assert Launch.objects.get().held_by == claims.own_hold()
    run_here.run_here(run.launch)
    assert Run.objects.get().outcome == "pass" and Launch.objects.get().held_by == ""


@pytest.mark.parametrize(
    ("seconds", "again", "sentence"),
    [
        (60, RetryKind.RESUME, r"in progress in a command \(--now, elsewhere:7\)"),
        (-1, RetryKind.RETRY, "ended before the run. Resume the run"),
    ],
)
def test_refusals_say_what_to_do(project, seconds, again, sentence):
    run = held(project, seconds=seconds)
    with pytest.raises(NotRetryable, match=sentence):
        retry_trials(run, again, by=None)
    assert retryable_counts(run) == ({} if seconds > 0 else {RetryKind.RESUME: 1})
