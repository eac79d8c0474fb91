"""Fair share: a free lane goes to the project, then the launch, then the run with the fewest lanes.

Priorities of projects, and of launches within a project, come before the number of lanes. What has waited for
`STARVED_SECONDS` without a lane comes before every priority.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection
from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from evalhub.teams.models import Priority
from runs.db.retry import retry_when_lost
from runs.db.transactions import DatabaseNow, database_now, new_token, write_transaction
from runs.models import Run, RunSlot, Target, TargetSlot
from runs.models.run import RunState
from runs.workers import claims
from runs.workers.claims import LaneSlot, is_ours
from runs.workers.labels import labels_suffice

STARVED_SECONDS = 300.0
"""A project or launch without a lane for this long gets the next one, for at least one trial."""
STARVED = max(Priority) + 1


@dataclass(frozen=True)
class RunCandidate:
    """A run that can use another lane."""

    run: int
    project: int
    launch: int
    last_lane_at: float
    """When a lane last took a slot, in the database's seconds."""
    open_share: float
    """The share of its trials that are open."""
    started: float = math.inf
    """When its trials could start, in seconds since the epoch."""
    project_priority: int = Priority.NORMAL
    launch_priority: int = Priority.NORMAL
    most_trials: int | None = None
    """Most trials at once of its project; None for no limit."""


@dataclass(frozen=True)
class SlotCounts:
    """Occupied slots by project, launch and run."""

    projects: Counter[int]
    launches: Counter[int]
    runs: Counter[int]


def next_slot(*, launch_id: int | None = None, leaving: LaneSlot | None = None) -> LaneSlot | None:
    """Release `leaving` and take a slot in the next run by fair share, in one transaction.

    `launch_id` limits the choice to one launch. Return None when no run can use a lane.
    """
    if leaving is None and not _below_limits(waiting_runs(launch_id)):
        # Without waiting runs, don't take the lock or SQLite's write lock.
        return None
    token = new_token()

    def swap() -> LaneSlot | None:
        with _choosing():
            waiting = waiting_runs(launch_id, leaving)
            if leaving is not None:
                claims.release_slot(leaving)
            held = count_slots()
            return _first_taken(
                sort_by_priority(below_limits(waiting, held), held, now=database_now()), token
            )

    return retry_when_lost(swap, committed=lambda: claims.slot_for_token(token))


def next_preparation(run_id: int) -> int | None:
    """Return the queued run that is prepared next, of those whose target has the same labels as this one's.

    Projects go by their priority, then by how few of their runs are being prepared; so do the launches of a project.
    """
    labels = Run.objects.filter(pk=run_id).values_list("target__labels", flat=True).first()
    queued = Run.objects.filter(
        labels_suffice(),
        is_ours(),
        state=RunState.QUEUED,
        cancel_requested=False,
        target__labels=labels or [],
    )
    columns = ("project", "launch", "project__priority", "launch__priority")
    oldest = queued.order_by().values_list(*columns).annotate(Min("pk"))
    under_way = Run.objects.filter(state=RunState.PREPARING).order_by().values_list("project", "launch")
    projects, launches = Counter[int](), Counter[int]()
    for project, launch in under_way:
        projects[project] += 1
        launches[launch] += 1

    def turn(row: tuple[int, int, int, int, int]) -> tuple[int, ...]:
        project, launch, project_priority, launch_priority, run = row
        return (-project_priority, projects[project], -launch_priority, launches[launch], run)

    return min(oldest, key=turn)[-1] if oldest else None


def should_give_way(slot: LaneSlot, *, launch_id: int | None = None) -> bool:
    """Return whether the lane should move to another run, or end."""
    if _exceeds_workers(slot):
        return True
    waiting = waiting_runs(launch_id, slot)
    alone = all(each.run == slot.run_id for each in waiting)
    if alone and all(each.most_trials is None for each in waiting):
        return False
    held = count_slots(without=slot)
    allowed = below_limits(waiting, held)
    if not allowed:
        # The project's limit was lowered.
        return bool(waiting)
    return sort_by_priority(allowed, held, now=database_now())[0].run != slot.run_id


def _exceeds_workers(slot: LaneSlot) -> bool:
    """Return whether the target's `workers` were lowered, and the lane has no slot of it any more. One query."""
    slots = TargetSlot.objects.filter(target=slot.target_id, token=slot.token)
    return Target.objects.filter(~Exists(slots), pk=slot.target_id, workers__gte=1).exists()


def _below_limits(waiting: list[RunCandidate]) -> list[RunCandidate]:
    """Return the runs whose project may have another lane; asks for the occupied slots only if one has a limit."""
    if all(each.most_trials is None for each in waiting):
        return waiting
    return below_limits(waiting, count_slots())


def below_limits(waiting: list[RunCandidate], held: SlotCounts) -> list[RunCandidate]:
    """Return the runs whose project may have another lane."""
    return [
        candidate
        for candidate in waiting
        if candidate.most_trials is None or held.projects[candidate.project] < candidate.most_trials
    ]


def _first_taken(waiting: list[RunCandidate], token: str) -> LaneSlot | None:
    for candidate in waiting:
        run = Run.objects.select_related("target").get(pk=candidate.run)
        slot = claims.acquire_slot(run, run.target, token)
        if slot is not None:
            Run.objects.filter(pk=candidate.run).update(last_lane_at=database_now())
            return slot
    return None


def waiting_runs(launch_id: int | None = None, leaving: LaneSlot | None = None) -> list[RunCandidate]:
    """Return the runs that can use another lane, counting `leaving` as free. One query."""
    runs = _with_free_slots(claims.runs_with_work(), leaving)
    if launch_id is not None:
        runs = runs.filter(launch=launch_id)
    columns = ("pk", "project", "launch", "last_lane_at", "open", "trials", "started")
    rows = runs.values_list(*columns, "project__priority", "launch__priority", "project__most_trials")
    return [
        RunCandidate(
            run,
            project,
            launch,
            last_lane_at,
            open / max(1, trials),
            started.timestamp() if started else math.inf,
            *priorities_and_limit,
        )
        for run, project, launch, last_lane_at, open, trials, started, *priorities_and_limit in rows
    ]


def _with_free_slots(runs: QuerySet[Run], leaving: LaneSlot | None) -> QuerySet[Run]:
    now = DatabaseNow()
    of_run = Exists(RunSlot.objects.filter(run=OuterRef("pk"), lease_until__lt=now))
    of_target = Exists(TargetSlot.objects.filter(target=OuterRef("target"), lease_until__lt=now))
    unlimited = Q(target__workers=None) | Q(target__workers=0)
    if leaving is None:
        return runs.filter(of_run, unlimited | of_target)
    return runs.filter(of_run | Q(pk=leaving.run_id), unlimited | of_target | Q(target=leaving.target_id))


def count_slots(*, without: LaneSlot | None = None) -> SlotCounts:
    """Count the occupied slots, except `without`. One query."""
    slots = RunSlot.objects.filter(lease_until__gte=DatabaseNow()).exclude(token="")
    if without is not None:
        slots = slots.exclude(run=without.run_id, token=without.token)
    rows = list(slots.values_list("run__project", "run__launch", "run"))
    return SlotCounts(
        Counter(project for project, _, _ in rows),
        Counter(launch for _, launch, _ in rows),
        Counter(run for _, _, run in rows),
    )


def sort_by_priority(
    waiting: list[RunCandidate], held: SlotCounts, *, now: float = 0.0
) -> list[RunCandidate]:
    """Return the runs in the order in which they get the next lane; `now` in seconds since the epoch.

    Priorities come first. With equally many slots, the one served longest ago goes first; runs of one launch advance together.
    """
    project_served = _last_served(waiting, lambda candidate: candidate.project)
    launch_served = _last_served(waiting, lambda candidate: candidate.launch)
    project_since = _waits_since(waiting, lambda candidate: candidate.project, project_served)
    launch_since = _waits_since(waiting, lambda candidate: candidate.launch, launch_served)

    def turn(candidate: RunCandidate) -> tuple[float, ...]:
        return (
            -_rank(
                candidate.project_priority,
                held.projects[candidate.project],
                project_since[candidate.project],
                now,
            ),
            held.projects[candidate.project],
            project_served[candidate.project],
            candidate.project,
            -_rank(
                candidate.launch_priority,
                held.launches[candidate.launch],
                launch_since[candidate.launch],
                now,
            ),
            held.launches[candidate.launch],
            launch_served[candidate.launch],
            candidate.launch,
            held.runs[candidate.run],
            -candidate.open_share,
            candidate.last_lane_at,
            candidate.run,
        )

    return sorted(waiting, key=turn)


def _last_served(waiting: list[RunCandidate], key: Callable[[RunCandidate], int]) -> dict[int, float]:
    latest: dict[int, float] = {}
    for candidate in waiting:
        latest[key(candidate)] = max(latest.get(key(candidate), 0.0), candidate.last_lane_at)
    return latest


def _waits_since(
    waiting: list[RunCandidate], key: Callable[[RunCandidate], int], served: dict[int, float]
) -> dict[int, float]:
    """Return since when each project or launch waits: since it was served, else since its first run could start."""
    since: dict[int, float] = {}
    for candidate in waiting:
        since[key(candidate)] = served[key(candidate)] or min(
            since.get(key(candidate), math.inf), candidate.started
        )
    return since


def _rank(priority: int, lanes: int, since: float, now: float) -> int:
    return STARVED if not lanes and now - since >= STARVED_SECONDS else priority


@contextmanager
def _choosing() -> Iterator[None]:
    """Let one lane choose at a time: SQLite has one writer, PostgreSQL uses an advisory lock."""
    with write_transaction():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                # Key of PostgreSQL's advisory lock: one lane chooses at a time, so each counts all others.
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [4_220_731])
        yield
