"""Lanes over whole launches: turns, caps, and how they are stopped."""

from __future__ import annotations

import os
import signal
import time

import pytest
from django.db import connection, transaction

from runs.engine import lanes, recording, run_here
from runs.models import Run, Target, Trial
from tests.builders import make_guidance, make_project, make_suite, make_target
from tests.runs.carrying import NO_GATES, beside, launch, running, shell_target, start, suite_of
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_runs_of_a_launch_take_turns():
    project = make_project()
    version = make_suite(project, **NO_GATES)
    guidance = [make_guidance(version.suite, name) for name in ("a", "b")]
    started = launch(version, guidance=guidance, trials=3)
    for run in started.runs.all():
        start(run)
    first = started.runs.order_by("pk").first()
    lanes.run_lane(first.pk)
    order = list(Trial.objects.filter(run__launch=started).order_by("started").values_list("run", flat=True))
    assert len(order) == 12
    assert all(order[n] != order[n + 1] for n in range(11)), order


def test_a_lane_at_its_time_limit_reports_remaining_work():
    run = running(trials=5)
    assert lanes.run_lane(run.pk, until=time.monotonic())
    assert run.trial_set.filter(state="finished").count() == 1
    assert not lanes.run_lane(run.pk)
    run.refresh_from_db()
    assert run.state == "finished"


def test_a_launch_is_carried_to_its_end_in_this_process():
    started = launch(trials=10, concurrency=4)
    run_here.run_here(started)
    run = started.runs.get()
    assert (run.state, run.outcome, run.passed) == ("finished", "pass", 20)
    assert run.fingerprint["target"] == "local"
    assert run.started <= run.finished


def test_cancelling_ends_a_running_agent_within_seconds():
    project = make_project()
    shell_target(project)
    run = launch(suite_of(project, a={"prompt": "sleep 60"}), targets=["shell"]).runs.get()
    with beside(lambda: run_here.run_here(run.launch)):
        until(Trial.objects.filter(run=run, state="running").exists)
        began = time.monotonic()
        recording.cancel_run(run.pk)
    assert time.monotonic() - began < 20
    run.refresh_from_db()
    assert (run.state, run.cancelled, run.open) == ("cancelled", 1, 0)
    assert run.trial_set.get().state == "cancelled"


def test_ctrl_c_cancels_what_runs_in_this_process():
    project = make_project()
    shell_target(project)
    run = launch(suite_of(project, a={"prompt": "sleep 60"}), targets=["shell"]).runs.get()

    pressed: list[float] = []

    def interrupt() -> None:
        until(Trial.objects.filter(run=run, state="running").exists, 60)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    with beside(interrupt), pytest.raises(KeyboardInterrupt):
        run_here.run_here(run.launch)
    assert time.monotonic() - pressed[0] < 30
    run.refresh_from_db()
    assert (run.state, run.trial_set.get().state) == ("cancelled", "cancelled")


def test_a_lane_that_is_given_up_before_it_begins_never_begins():
    """Ctrl-C while lanes are started: the run is cancelled, and a late lane would start its trials."""
    run = running()
    (thread,) = lanes.lane_threads([run.pk])
    thread.wait_or_give_up(60)
    thread.start()
    thread.join()
    assert set(run.trial_set.values_list("state", flat=True)) == {"queued"}


def test_a_lane_that_has_begun_is_waited_for():
    run = running(trials=5)
    (thread,) = lanes.lane_threads([run.pk])
    thread.start()
    until(lambda: run.trial_set.exclude(state="queued").exists())
    thread.wait_or_give_up(60)
    assert set(run.trial_set.values_list("state", flat=True)) == {"finished"}


def test_ctrl_c_in_the_midst_of_a_transaction_leaves_nothing_of_it():
    started = launch()
    called: list[int] = []

    def interrupted(run_id: int) -> None:
        called.append(run_id)
        if len(called) > 1:
            return
        transaction.atomic().__enter__()
        Run.objects.filter(pk=run_id).update(tool_version="half done")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_here.run_here(started, interrupted)
    assert not connection.in_atomic_block
    assert started.runs.get().tool_version == ""
    # What was interrupted is called once more, so that a run's results are written whole.
    assert called == [started.runs.get().pk] * 2


def test_a_target_with_one_slot_runs_one_trial_at_a_time():
    project = make_project()
    definition = {"name": "slow", "provider": "mock", "delay_ms": 30, "workers": 1}
    Target.objects.create(project=project, name="slow", provider="mock", definition=definition, workers=1)
    make_target(project)
    version = make_suite(project, **NO_GATES)
    guidance = [make_guidance(version.suite, name) for name in ("a", "b")]
    started = launch(version, targets=["slow"], guidance=guidance, trials=2, concurrency=2)
    run_here.run_here(started)
    spans = sorted(Trial.objects.values_list("started", "finished"))
    assert all(spans[n][1] <= spans[n + 1][0] for n in range(len(spans) - 1)), spans
