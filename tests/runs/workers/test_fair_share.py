"""Whose turn it is among projects, launches and runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from evalhub.teams.models import Priority, Project
from runs.engine import lanes, preparation
from runs.models import Run, RunSlot, Target, Trial
from runs.workers import claims, fair_share
from runs.workers.fair_share import RunCandidate, SlotCounts, sort_by_priority
from tests.builders import make_project, make_run, make_suite, make_target
from tests.runs.carrying import NO_GATES, beside, running

pytestmark = pytest.mark.django_db(transaction=True)


def waiting(
    run: int, project: int = 1, launch: int = 0, last_lane_at: float = 0.0, left: float = 1.0, **more: Any
) -> RunCandidate:
    return RunCandidate(run, project, launch or run, last_lane_at, left, **more)


def held(*runs: RunCandidate) -> SlotCounts:
    return SlotCounts(
        Counter(each.project for each in runs),
        Counter(each.launch for each in runs),
        Counter(each.run for each in runs),
    )


def order(runs: list[RunCandidate], slots: SlotCounts) -> list[int]:
    return [each.run for each in sort_by_priority(runs, slots)]


def test_the_project_with_the_fewest_lanes_comes_first():
    big, small = waiting(1, project=1), waiting(2, project=2)
    assert order([big, small], held(big, big)) == [2, 1]


def test_then_the_launch_with_the_fewest_lanes():
    big, small = waiting(1, launch=1), waiting(2, launch=2)
    assert order([big, small], held(big)) == [2, 1]


def test_then_the_run_with_the_fewest_lanes():
    one, other = waiting(1, launch=7), waiting(2, launch=7)
    assert order([one, other], held(one)) == [2, 1]


def test_equals_take_turns_by_when_they_were_served():
    runs = [waiting(1, 1, last_lane_at=3.0), waiting(2, 2, last_lane_at=1.0), waiting(3, 3, last_lane_at=2.0)]
    assert order(runs, held()) == [2, 3, 1]


def test_runs_of_a_launch_advance_together():
    ahead, behind = (
        waiting(1, launch=7, last_lane_at=1.0, left=0.2),
        waiting(2, launch=7, last_lane_at=2.0, left=0.6),
    )
    assert order([ahead, behind], held()) == [2, 1]


def test_a_project_of_higher_priority_comes_before_fewer_lanes():
    low = waiting(1, project=1, project_priority=Priority.LOW)
    normal, high = waiting(2, project=2), waiting(3, project=3, project_priority=Priority.HIGH)
    assert order([low, normal, high], held(high, high, normal)) == [3, 2, 1]


def test_a_launch_of_higher_priority_comes_first_in_its_project_only():
    low = waiting(1, launch=1, launch_priority=Priority.LOW)
    high = waiting(2, launch=2, launch_priority=Priority.HIGH)
    other = waiting(3, project=2, launch=3)
    assert order([low, high, other], held(high)) == [3, 2, 1]


@pytest.mark.parametrize(
    ("served", "started", "lanes", "first"),
    [(500.0, 1.0, 0, 2), (700.1, 1.0, 0, 1), (0.0, 700.0, 0, 2), (0.0, 700.1, 0, 1), (500.0, 1.0, 1, 1)],
    ids=["waits long", "served lately", "never served", "started lately", "has a lane"],
)
def test_what_waits_for_five_minutes_comes_first(served, started, lanes, first):
    now = 1000.0
    normal = waiting(1, project=1, last_lane_at=999.0, started=1.0)
    low = waiting(2, project=2, last_lane_at=served, started=started, project_priority=Priority.LOW)
    assert sort_by_priority([normal, low], held(*[low] * lanes), now=now)[0].run == first


def test_a_launch_that_waits_for_five_minutes_comes_first():
    high = waiting(1, launch=1, last_lane_at=999.0, launch_priority=Priority.HIGH)
    low = waiting(2, launch=2, started=700.0, launch_priority=Priority.LOW)
    assert [each.run for each in sort_by_priority([high, low], held(high), now=1000.0)] == [2, 1]


def in_project(slug: str, project: dict[str, int] | None = None, **changes: Any) -> Run:
    """Return a running run in a project of its own."""
    project = make_project(slug, **(project or {}))
    make_target(project)
    return running(make_suite(project, **NO_GATES), **changes)


def test_lanes_are_shared_between_projects():
    runs = [in_project(f"p{n}", trials=20, concurrency=8) for n in range(2)]
    slots = [fair_share.next_slot() for _ in range(8)]
    assert Counter(slot.run_id for slot in slots if slot) == {run.pk: 4 for run in runs}


def test_a_lane_gives_way_to_a_project_that_has_none():
    big = in_project("big", trials=20, concurrency=2)
    mine, other = fair_share.next_slot(), fair_share.next_slot()
    assert mine is not None
    assert other is not None
    assert not fair_share.should_give_way(mine)
    small = in_project("small", trials=1)
    assert fair_share.should_give_way(mine)
    following = fair_share.next_slot(leaving=mine)
    assert following is not None
    assert following.run_id == small.pk
    assert RunSlot.objects.filter(run=big).exclude(token="").count() == 1
    assert not fair_share.should_give_way(other), "each project has one lane now"


def test_a_lane_yields_to_a_run_waiting_for_the_target():
    project = make_project()
    definition = {"name": "slow", "provider": "mock", "workers": 1}
    Target.objects.create(project=project, name="slow", provider="mock", definition=definition, workers=1)
    version = make_suite(project, **NO_GATES)
    first, second = (running(version, targets=["slow"], trials=5) for _ in range(2))
    mine = fair_share.next_slot()
    assert mine is not None
    assert mine.run_id == first.pk
    assert fair_share.next_slot() is None
    following = fair_share.next_slot(leaving=mine)
    assert following is not None
    assert following.run_id == second.pk


def test_a_single_lane_serves_three_projects_in_turn():
    runs = [in_project(f"p{n}", trials=20) for n in range(3)]
    slot, served = None, []
    for _ in range(6):
        slot = fair_share.next_slot(leaving=slot)
        assert slot is not None
        served.append(slot.run_id)
    assert served == [run.pk for run in runs] * 2


def at_once(threads: int, work: Callable[[], Any]) -> list[Any]:
    """Return what the work returns in so many threads that begin together."""
    together = Barrier(threads)

    def begin(_: int) -> Any:
        try:
            together.wait()
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def test_lanes_that_choose_at_once_count_each_other():
    runs = [in_project(f"p{n}", trials=20, concurrency=8) for n in range(2)]
    slots = at_once(8, fair_share.next_slot)
    assert Counter(slot.run_id for slot in slots if slot) == {run.pk: 4 for run in runs}


def test_a_lane_gives_way_to_a_project_of_higher_priority():
    in_project("low", trials=20, concurrency=2)
    mine = fair_share.next_slot()
    assert mine is not None
    high = in_project("high", {"priority": Priority.HIGH}, trials=20, concurrency=2)
    assert fair_share.should_give_way(mine)
    slots = [fair_share.next_slot(leaving=mine), fair_share.next_slot()]
    assert [slot.run_id for slot in slots if slot] == [high.pk] * 2


def test_a_launch_of_higher_priority_gets_the_next_lane():
    low = in_project("p", trials=20, concurrency=2)
    high = running(low.suite_version, trials=1, priority=Priority.HIGH)
    slot = fair_share.next_slot()
    assert slot is not None
    assert slot.run_id == high.pk


def test_a_project_never_has_more_lanes_than_its_limit():
    capped = in_project("capped", {"most_trials": 3}, trials=20, concurrency=8)
    running(capped.suite_version, trials=20, concurrency=8)
    free = in_project("free", trials=20, concurrency=8)
    slots = at_once(16, fair_share.next_slot)
    of_projects = Counter("free" if slot.run_id == free.pk else "capped" for slot in slots if slot)
    assert of_projects == {"capped": 3, "free": 8}


def test_lanes_of_a_project_end_when_its_limit_is_lowered():
    run = in_project("p", trials=20, concurrency=8)
    mine, _other = fair_share.next_slot(), fair_share.next_slot()
    assert mine is not None
    assert not fair_share.should_give_way(mine)
    Project.objects.update(most_trials=1)
    assert fair_share.should_give_way(mine)
    assert fair_share.next_slot(leaving=mine) is None
    assert RunSlot.objects.filter(run=run).exclude(token="").count() == 1


def test_trials_at_once_stay_below_the_limit_of_their_project():
    """Twelve lanes run two runs; the most that any trial saw running is the limit."""
    run = in_project("p", {"most_trials": 2}, trials=15, concurrency=8)
    other = running(run.suite_version, trials=15, concurrency=8)
    seen: list[int] = []

    def watch() -> None:
        while Run.objects.filter(state="running").exists():
            seen.append(Trial.objects.filter(state="running").count())
            time.sleep(0.002)

    def work() -> None:
        while Run.objects.filter(state="running").exists():
            slot = fair_share.next_slot()
            if slot is not None:
                lanes.run_from_slot(slot)
            else:
                # Lanes that only ask would keep the others from working.
                time.sleep(0.01)

    with beside(watch):
        at_once(12, work)
    for each in (run, other):
        each.refresh_from_db()
        assert (each.state, each.passed) == ("finished", 30)
    assert 0 < max(seen) <= 2


def test_a_lane_of_a_launch_leaves_other_launches_alone():
    mine, other = in_project("mine", trials=1), in_project("other", trials=1)
    lanes.run_lane(mine.pk)
    other.refresh_from_db()
    assert (other.state, other.open) == ("running", 2)


def test_a_run_whose_places_are_all_held_gets_no_further_lane():
    run = in_project("p", trials=5, concurrency=1)
    assert claims.acquire_slot(run, run.target) is not None
    assert fair_share.next_slot() is None


def queued(project: Project, **changes: Any) -> Run:
    """Return a run of a launch of its own that waits for its preparation."""
    target = make_target(project, f"t{Run.objects.count()}", labels=changes.pop("labels", []))
    return make_run(make_suite(project), target=target, **{"state": "queued", **changes})


def test_the_project_with_the_fewest_preparations_is_prepared_next():
    big, small = make_project("big"), make_project("small")
    first, second, third = queued(big), queued(big), queued(big)
    assert fair_share.next_preparation(third.pk) == first.pk
    Run.objects.filter(pk=first.pk).update(state="preparing")
    of_small = queued(small)
    assert fair_share.next_preparation(second.pk) == of_small.pk
    Project.objects.filter(pk=big.pk).update(priority=Priority.HIGH)
    assert fair_share.next_preparation(of_small.pk) == second.pk


def test_then_the_launch_with_the_fewest_preparations_is_prepared_next():
    project = make_project()
    first = queued(project)
    second = queued(project, launch=first.launch)
    Run.objects.filter(pk=first.pk).update(state="preparing")
    other = queued(project)
    assert fair_share.next_preparation(second.pk) == other.pk


def test_a_preparation_for_other_labels_is_no_choice(settings):
    settings.WORKER_LABELS = ["gpu"]
    plain, labelled = queued(make_project("a")), queued(make_project("b"), labels=["gpu"])
    Run.objects.filter(pk=plain.pk).update(state="preparing")
    assert fair_share.next_preparation(plain.pk) is None
    assert fair_share.next_preparation(labelled.pk) == labelled.pk


def test_a_preparation_is_not_held_up_by_those_of_another_project():
    big, small = make_project("big"), make_project("small")
    queued(big, state="preparing")
    waiting_run, of_small = queued(big), queued(small)
    preparation.prepare_next(waiting_run.pk)
    assert list(Run.objects.filter(state="queued")) == [waiting_run]
    of_small.refresh_from_db()
    assert of_small.starts == 1
