"""Whose turn it is among projects, launches and runs."""

from __future__ import annotations

from collections import Counter
from threading import Barrier, Thread

import pytest
from django.db import connections

from runs.execution import lanes
from runs.models import Run, RunSlot, Target
from runs.queue import claims, fair_share
from runs.queue.claims import Place
from runs.queue.fair_share import Held, Waiting, by_turn
from tests.builders import make_project, make_suite, make_target
from tests.runs.carrying import NO_GATES, running

pytestmark = pytest.mark.django_db(transaction=True)


def waiting(run: int, project: int = 1, launch: int = 0, served: float = 0.0, left: float = 1.0) -> Waiting:
    return Waiting(run, project, launch or run, served, left)


def held(*runs: Waiting) -> Held:
    return Held(
        Counter(each.project for each in runs),
        Counter(each.launch for each in runs),
        Counter(each.run for each in runs),
    )


def order(runs: list[Waiting], places: Held) -> list[int]:
    return [each.run for each in by_turn(runs, places)]


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
    runs = [waiting(1, 1, served=3.0), waiting(2, 2, served=1.0), waiting(3, 3, served=2.0)]
    assert order(runs, held()) == [2, 3, 1]


def test_runs_of_a_launch_advance_together():
    ahead, behind = waiting(1, launch=7, served=1.0, left=0.2), waiting(2, launch=7, served=2.0, left=0.6)
    assert order([ahead, behind], held()) == [2, 1]


def in_project(slug: str, **changes: int) -> Run:
    """Return a running run in a project of its own."""
    project = make_project(slug)
    make_target(project)
    return running(make_suite(project, **NO_GATES), **changes)


def test_lanes_are_shared_between_projects():
    runs = [in_project(f"p{n}", trials=20, concurrency=8) for n in range(2)]
    places = [fair_share.next_place() for _ in range(8)]
    assert Counter(place.run_id for place in places if place) == {run.pk: 4 for run in runs}


def test_a_lane_gives_way_to_a_project_that_has_none():
    big = in_project("big", trials=20, concurrency=2)
    mine, other = fair_share.next_place(), fair_share.next_place()
    assert mine is not None
    assert other is not None
    assert not fair_share.should_give_way(mine)
    small = in_project("small", trials=1)
    assert fair_share.should_give_way(mine)
    following = fair_share.next_place(leaving=mine)
    assert following is not None
    assert following.run_id == small.pk
    assert RunSlot.objects.filter(run=big).exclude(token="").count() == 1
    assert not fair_share.should_give_way(other), "each project has one lane now"


def test_a_lane_gives_way_to_a_run_that_waits_for_its_place_on_the_target():
    project = make_project()
    definition = {"name": "slow", "provider": "mock", "workers": 1}
    Target.objects.create(project=project, name="slow", provider="mock", definition=definition, workers=1)
    version = make_suite(project, **NO_GATES)
    first, second = (running(version, targets=["slow"], trials=5) for _ in range(2))
    mine = fair_share.next_place()
    assert mine is not None
    assert mine.run_id == first.pk
    assert fair_share.next_place() is None
    following = fair_share.next_place(leaving=mine)
    assert following is not None
    assert following.run_id == second.pk


def test_a_single_lane_serves_three_projects_in_turn():
    runs = [in_project(f"p{n}", trials=20) for n in range(3)]
    place, served = None, []
    for _ in range(6):
        place = fair_share.next_place(leaving=place)
        assert place is not None
        served.append(place.run_id)
    assert served == [run.pk for run in runs] * 2


def test_lanes_that_choose_at_once_count_each_other():
    runs = [in_project(f"p{n}", trials=20, concurrency=8) for n in range(2)]
    places: list[Place | None] = []
    together = Barrier(8)

    def choose() -> None:
        try:
            together.wait()
            places.append(fair_share.next_place())
        finally:
            connections.close_all()

    threads = [Thread(target=choose) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(place.run_id for place in places if place) == {run.pk: 4 for run in runs}


def test_a_lane_of_a_launch_leaves_other_launches_alone():
    mine, other = in_project("mine", trials=1), in_project("other", trials=1)
    lanes.run_lane(mine.pk)
    other.refresh_from_db()
    assert (other.state, other.open) == ("running", 2)


def test_a_run_whose_places_are_all_held_gets_no_further_lane():
    run = in_project("p", trials=5, concurrency=1)
    assert claims.take_place(run, run.target) is not None
    assert fair_share.next_place() is None
