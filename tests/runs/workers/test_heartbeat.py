"""What a process receives and reports while it holds claims."""

from __future__ import annotations

import time

import pytest

from evaluators.transcripts.latest import LatestCalls
from runs.engine import recording
from runs.models import Trial
from runs.workers import heartbeat as heartbeat_module
from runs.workers.claims import expired_trials
from runs.workers.heartbeat import CHECK_SECONDS, Heartbeat
from runs.workers.worker_registry import worker_name
from tests.builders import make_project
from tests.heartbeats import end_heartbeats
from tests.runs.carrying import carrying, claimed, running, shell_target, suite_of
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def claim(settings):
    """Return the claim of a trial whose lease ends within a second."""
    settings.LEASE_SECONDS = 1
    return claimed(running())


def test_the_heartbeat_hears_that_a_claim_is_somebody_elses(claim):
    beat = Heartbeat()
    with beat.holding(claim.token, "trial"):
        Trial.objects.filter(pk=claim.trial_id).update(token="another")
        end = time.monotonic() + 5
        while not beat.stopped(claim.token) and time.monotonic() < end:
            time.sleep(0.05)
        assert beat.stopped(claim.token)
    assert not beat.stopped(claim.token)


def test_the_heartbeat_keeps_a_claim_beyond_its_lease(claim):
    beat = Heartbeat()
    with beat.holding(claim.token, "trial"):
        time.sleep(2.2)
        assert not expired_trials().exists()
        assert not beat.stopped(claim.token)


REPORTED_CALLS = """
echo '{"type":"tool_call","name":"bash","command":"taskmgr list --all"}' >> "$EVENTS"
echo '{"type":"tool_result","output":"none"}' >> "$EVENTS"
sleep 60
"""


def test_a_running_trial_has_worker_calls_and_last_command():
    project = make_project()
    shell_target(project)
    run = running(suite_of(project, works={"prompt": REPORTED_CALLS}), targets=["shell"])
    with carrying(run):
        until(lambda: Trial.objects.filter(run=run).exclude(activity="").exists())
        assert at_work(run) == ("taskmgr list --all", 1, worker_name())
        recording.cancel_run(run.pk)
    assert run.trial_set.get().state == "cancelled"
    assert at_work(run) == ("", None, worker_name())


def at_work(run):
    return run.trial_set.values_list("activity", "calls_so_far", "worker").get()


def test_what_an_agent_did_last_is_stored_without_secrets(monkeypatch):
    secret = "hunter2-and-more"
    monkeypatch.setenv("TOOL_KEY", secret)
    script = """printf '{"type":"tool_call","command":"git push %s"}\\n' "$TOOL_KEY" > "$EVENTS"; sleep 60"""
    criteria = {"tool": {"binary": "git", "env": {"TOOL_KEY": "${TOOL_KEY}"}}, "gates": []}
    project = make_project("default")
    shell_target(project)
    run = running(suite_of(project, a={"prompt": script, "criteria": criteria}), targets=["shell"])
    with carrying(run):
        until(lambda: Trial.objects.filter(run=run).exclude(activity="").exists())
        assert run.trial_set.get().activity == "git push [REDACTED]"
        recording.cancel_run(run.pk)


def test_the_heartbeat_writes_down_what_changed_and_only_that():
    claim = claimed(running())
    beat = Heartbeat()
    calls = iter([("", None), ("", 0), ("one", 1), ("one", 1), ("one", 1, 7), ("one", 2), ("two", 3)])
    beat._tokens[claim.token] = "trial"
    beat.watch(claim.trial_id, claim.token, lambda: LatestCalls(*next(calls)))
    trial = Trial.objects.filter(pk=claim.trial_id)
    as_it_was, none = ("as it was", 99, 5), None
    then = [("", 0, none), ("one", 1, none), as_it_was, ("one", 1, 7), ("one", 2, none), ("two", 3, none)]
    for expected in (as_it_was, *then):
        trial.update(activity=as_it_was[0], calls_so_far=as_it_was[1], activity_exit_code=as_it_was[2])
        beat.store_activity()
        assert trial.values_list("activity", "calls_so_far", "activity_exit_code").get() == expected


def test_unreadable_output_does_not_end_the_heartbeat(caplog):
    claim = claimed(running())
    beat = Heartbeat()

    def look() -> LatestCalls:
        raise RuntimeError("hostile")

    with beat.holding(claim.token, "trial"):
        beat.watch(claim.trial_id, claim.token, look)
        until(lambda: "hostile" in caplog.text)
        assert beat._thread is not None
        assert beat._thread.is_alive()


def test_an_old_token_records_nothing():
    beat = Heartbeat()
    beat.watch(1, "gone", lambda: LatestCalls("one", 1))
    assert not beat._watched
    with beat.holding("here", "trial"):
        beat.watch(1, "here", LatestCalls)
        assert beat._watched
    assert not beat._watched


def test_the_heartbeats_thread_ends_when_nothing_is_held():
    beat = Heartbeat()
    with beat.holding("x", "trial"):
        thread = beat._thread
    assert thread is not None
    thread.join(5 * heartbeat_module.CHECK_SECONDS)
    assert not thread.is_alive()


def test_the_thread_ends_with_the_last_token():
    """A thread that only slept until its next check would take ten times as long, and outlive its test."""
    beating = Heartbeat()
    began = time.monotonic()
    for number in range(10):
        with beating.holding(f"token-{number}", "trial"):
            pass
        end_heartbeats()
    assert time.monotonic() - began < 10 * CHECK_SECONDS / 2
