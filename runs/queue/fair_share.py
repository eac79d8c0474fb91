"""Whose turn it is: lanes go to the project, then the launch, then the run that has the fewest of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from runs.models import Run, RunSlot, TargetSlot
from runs.queue import claims
from runs.queue.claims import Place
from runs.queue.clock import DatabaseNow, database_now
from runs.queue.retry import retry_when_lost
from runs.queue.transactions import write_transaction

CHOOSING = 4_220_731
"""Number of PostgreSQL's advisory lock: one lane at a time chooses, so that each counts the places of all others."""


@dataclass(frozen=True)
class Waiting:
    """A run that can use another lane now."""

    run: int
    project: int
    launch: int
    served: float
    """When a lane last took a place in it, in the database's seconds."""
    left: float
    """The share of its trials that is not over."""


@dataclass(frozen=True)
class Held:
    """How many places lanes hold, by project, launch and run."""

    projects: Counter[int]
    launches: Counter[int]
    runs: Counter[int]


def next_place(*, launch_id: int | None = None, leaving: Place | None = None) -> Place | None:
    """Take a place in the run whose turn it is, in the same transaction in which `leaving` is given back.

    `launch_id` looks at the runs of one launch only. None when no run can use a lane.
    """
    if leaving is None and not waiting_runs(launch_id):
        # Nobody waits for the lock, or for SQLite's only writer, while there is nothing to do.
        return None
    token = claims.new_token()

    def swap() -> Place | None:
        with _choosing():
            waiting = waiting_runs(launch_id, leaving)
            if leaving is not None:
                claims.release_place(leaving)
            return _first_taken(by_turn(waiting, places_held()), token)

    return retry_when_lost(swap, committed=lambda: claims.held_place(token))


def should_give_way(place: Place, *, launch_id: int | None = None) -> bool:
    """Return whether another run has more right to this lane than the one that has it."""
    waiting = waiting_runs(launch_id, place)
    if all(each.run == place.run_id for each in waiting):
        return False
    return by_turn(waiting, places_held(without=place))[0].run != place.run_id


def _first_taken(waiting: list[Waiting], token: str) -> Place | None:
    for each in waiting:
        run = Run.objects.select_related("target").get(pk=each.run)
        place = claims.take_place(run, run.target, token)
        if place is not None:
            Run.objects.filter(pk=each.run).update(served=database_now())
            return place
    return None


def waiting_runs(launch_id: int | None = None, leaving: Place | None = None) -> list[Waiting]:
    """Return the runs that can use another lane. The places of `leaving` count as free. One query."""
    runs = _with_free_places(claims.runs_with_work(), leaving)
    if launch_id is not None:
        runs = runs.filter(launch=launch_id)
    rows = runs.values_list("pk", "project", "launch", "served", "open", "trials")
    return [
        Waiting(run, project, launch, served, left=open / max(1, trials))
        for run, project, launch, served, open, trials in rows
    ]


def _with_free_places(runs: QuerySet[Run], leaving: Place | None) -> QuerySet[Run]:
    now = DatabaseNow()
    of_run = Exists(RunSlot.objects.filter(run=OuterRef("pk"), lease_until__lt=now))
    of_target = Exists(TargetSlot.objects.filter(target=OuterRef("target"), lease_until__lt=now))
    unlimited = Q(target__workers=None) | Q(target__workers=0)
    if leaving is None:
        return runs.filter(of_run, unlimited | of_target)
    return runs.filter(of_run | Q(pk=leaving.run_id), unlimited | of_target | Q(target=leaving.target_id))


def places_held(*, without: Place | None = None) -> Held:
    """Count the places that lanes hold, as if `without` were free. One query."""
    slots = RunSlot.objects.filter(lease_until__gte=DatabaseNow()).exclude(token="")
    if without is not None:
        slots = slots.exclude(run=without.run_id, token=without.token)
    rows = list(slots.values_list("run__project", "run__launch", "run"))
    return Held(
        Counter(project for project, _, _ in rows),
        Counter(launch for _, launch, _ in rows),
        Counter(run for _, _, run in rows),
    )


def by_turn(waiting: list[Waiting], held: Held) -> list[Waiting]:
    """Return the runs in the order in which they get the next lane.

    Where two hold equally many places, the one goes first that was served longest ago; runs of one launch that hold
    equally many advance together.
    """
    project_served = _last_served(waiting, lambda each: each.project)
    launch_served = _last_served(waiting, lambda each: each.launch)

    def turn(each: Waiting) -> tuple[float, ...]:
        return (
            held.projects[each.project],
            project_served[each.project],
            each.project,
            held.launches[each.launch],
            launch_served[each.launch],
            each.launch,
            held.runs[each.run],
            -each.left,
            each.served,
            each.run,
        )

    return sorted(waiting, key=turn)


def _last_served(waiting: list[Waiting], key: Callable[[Waiting], int]) -> dict[int, float]:
    found: dict[int, float] = {}
    for each in waiting:
        found[key(each)] = max(found.get(key(each), 0.0), each.served)
    return found


@contextmanager
def _choosing() -> Iterator[None]:
    """Let one lane at a time choose: SQLite has one writer anyway, PostgreSQL gets an advisory lock."""
    with write_transaction():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHOOSING])
        yield
