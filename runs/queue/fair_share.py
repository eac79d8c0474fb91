"""Fair share: a free lane goes to the project, then the launch, then the run with the fewest lanes."""

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
"""Key of PostgreSQL's advisory lock: one lane chooses at a time, so each counts all others."""


@dataclass(frozen=True)
class Waiting:
    """A run that can use another lane."""

    run: int
    project: int
    launch: int
    served: float
    """When a lane last took a slot, in the database's seconds."""
    open_share: float
    """The share of its trials that are open."""


@dataclass(frozen=True)
class Held:
    """Occupied places by project, launch and run."""

    projects: Counter[int]
    launches: Counter[int]
    runs: Counter[int]


def next_place(*, launch_id: int | None = None, leaving: Place | None = None) -> Place | None:
    """Release `leaving` and take a place in the next run by fair share, in one transaction.

    `launch_id` limits the choice to one launch. Return None when no run can use a lane.
    """
    if leaving is None and not waiting_runs(launch_id):
        # Without waiting runs, don't take the lock or SQLite's write lock.
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
    """Return whether the lane should move to another run."""
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
    """Return the runs that can use another lane, counting `leaving` as free. One query."""
    runs = _with_free_places(claims.runs_with_work(), leaving)
    if launch_id is not None:
        runs = runs.filter(launch=launch_id)
    rows = runs.values_list("pk", "project", "launch", "served", "open", "trials")
    return [
        Waiting(run, project, launch, served, open_share=open / max(1, trials))
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
    """Count the occupied places, except `without`. One query."""
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

    With equally many places, the one served longest ago goes first; runs of one launch advance together.
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
            -each.open_share,
            each.served,
            each.run,
        )

    return sorted(waiting, key=turn)


def _last_served(waiting: list[Waiting], key: Callable[[Waiting], int]) -> dict[int, float]:
    latest: dict[int, float] = {}
    for each in waiting:
        latest[key(each)] = max(latest.get(key(each), 0.0), each.served)
    return latest


@contextmanager
def _choosing() -> Iterator[None]:
    """Let one lane choose at a time: SQLite has one writer, PostgreSQL uses an advisory lock."""
    with write_transaction():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHOOSING])
        yield
