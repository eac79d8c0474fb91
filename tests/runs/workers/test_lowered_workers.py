"""A target's `workers`, lowered while a run on it is open, limit that run's lanes too."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from runs.engine import lanes, preparation, recording
from runs.models import Run, Target, TargetSlot, Trial
from runs.workers.claims import follow_target
from tests.builders import make_project
from tests.runs.carrying import beside, launch, running, shell_target, suite_of
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def _limit(target: Target, workers: int | None) -> None:
    Target.objects.filter(pk=target.pk).update(workers=workers)
    target.refresh_from_db()
    follow_target(target)


def _at_work() -> int:
    return Trial.objects.filter(state="running").count()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("before", [None, 0, 4])
def test_open_runs_follow_at_the_end_of_their_trials(before: int | None) -> None:
    project = make_project("default")
    target = shell_target(project)
    _limit(target, before)
    version = suite_of(project, a={"prompt": "sleep 0.2"})
    run = running(version, targets=["shell"], trials=60, concurrency=4)

    def work() -> None:
        try:
            lanes.run_lane(run.pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        carried = [pool.submit(work) for _ in range(4)]
        try:
            until(lambda: _at_work() == 4)
            _limit(target, 1)
            until(lambda: sum(each.done() for each in carried) == 3)
            seen = set()
            for _ in range(10):
                seen.add(_at_work())
                time.sleep(0.1)
        finally:
            recording.cancel_run(run.pk)
    assert max(seen) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 3)])
def test_a_limit_that_changes_during_a_preparation_is_kept(before: int, after: int) -> None:
    project = make_project("default")
    target = shell_target(project)
    _limit(target, before)
    slow = {"criteria": {"tool": {"binary": "sh", "health_check": "sleep 2"}, "gates": []}}
    run = launch(suite_of(project, a=slow), targets=["shell"]).runs.get()
    with beside(lambda: preparation.prepare_run(run.pk)):
        until(lambda: Run.objects.get(pk=run.pk).state == "preparing")
        time.sleep(0.5)
        _limit(target, after)
    assert Run.objects.get(pk=run.pk).state == "running"
    assert TargetSlot.objects.filter(target=target).count() == after
