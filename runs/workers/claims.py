"""Claims of trials and preparations: conditional updates with leases and fencing tokens.

The database is the queue of record. A claim is one UPDATE that names the state it expects. Every later write names
the claim's token, so a worker that was thought lost cannot overwrite its successor's work.

No worker takes the trials of a launch that one process executes by itself (`--now`), which the process holds and
renews with its leases. When the process is gone, the launch waits for a worker that can have its variables, or for
a person who resumes or cancels its runs.
"""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from evalhub.lib.limits import LONGEST_NAME
from runs.db import statements
from runs.db.retry import retry_when_lost
from runs.db.transactions import (
    DatabaseNow,
    database_now,
    lease_end,
    new_token,
    one_writer,
    write_transaction,
)
from runs.labels import LabelsWithin
from runs.models import Job, Launch, ProviderBatch, Run, RunSlot, Target, TargetSlot, Trial
from runs.models.job import BatchState
from runs.models.run import OPEN, RunState
from runs.models.trial import TrialState
from runs.workers.labels import labels_suffice, own_labels

_HEX_BYTES = 3


class OwnName:
    """Host and process number; more if another worker has the same.

    Containers that share the host's network have its name, and their workers often the same number.
    """

    def __init__(self) -> None:
        self._more = ""

    def __str__(self) -> str:
        return f"{socket.gethostname()[: LONGEST_NAME // 2]}:{os.getpid()}{self._more}"

    def extend(self) -> None:
        """Make the name one that no other worker has."""
        self._more = f":{secrets.token_hex(_HEX_BYTES)}"

    def reset(self) -> None:
        """Return to host and process number."""
        self._more = ""


own_name = OwnName()
"""The name of this process."""


def worker_name() -> str:
    """Return this process's name."""
    return str(own_name)


_HOLD_HEX_BYTES = 4


@cache
def _secret(process: str) -> str:
    return secrets.token_hex(_HOLD_HEX_BYTES)


def own_hold() -> str:
    """Return the name under which this process holds launches: host and process number, and a word by chance."""
    return f"{worker_name()}:{_secret(worker_name())}"


def is_ours(prefix: str = "launch__") -> Q:
    """Return the condition that workers, or this process alone, execute a launch, whose columns begin with `prefix`."""
    return Q(**{f"{prefix}held_by__in": ("", own_hold())})


def hold_launches(launches: QuerySet[Launch]) -> int:
    """Take these launches, unless another process that lives has them; return how many were taken."""
    free = Q(held_by__in=("", own_hold())) | Q(held_until__lt=DatabaseNow())
    until = DatabaseNow() + float(settings.LEASE_SECONDS)
    return launches.filter(free).update(held_by=own_hold(), held_until=until)


def renew_own() -> None:
    """Renew the holds of this process."""
    hold_launches(Launch.objects.filter(held_by=own_hold()))


def let_go(launches: QuerySet[Launch]) -> int:
    """Leave the launches that this process holds to workers; return how many there were."""
    return launches.filter(held_by=own_hold()).update(held_by="", held_until=0.0)


def abandoned_launches() -> QuerySet[Launch]:
    """Return the launches with open runs whose process is gone."""
    unfinished = Exists(Run.objects.filter(launch=OuterRef("pk"), state__in=OPEN))
    return Launch.objects.filter(unfinished, held_until__lt=DatabaseNow()).exclude(held_by="")


def is_abandoned(launch: Launch) -> bool:
    """Return whether the process that holds the launch is gone."""
    return bool(launch.held_by) and launch.held_until < database_now()


def holder_of(launch: Launch) -> str:
    """Return host and process number of the process that holds the launch; empty if workers execute it."""
    return launch.held_by.rpartition(":")[0]


def leave_to_workers(launches: QuerySet[Launch]) -> int:
    """Give up the holds of processes that are gone; return how many there were."""
    gone = launches.filter(held_until__lt=DatabaseNow()).exclude(held_by="")
    return gone.update(held_by="", held_until=0.0)


MOST_STARTS = 5
"""A trial or preparation that loses its worker this often is an error: it probably kills workers."""

MAX_REQUEUES = 3
"""A trial or preparation requeued more often for a full disk is an error."""

MOST_TRIES = MAX_REQUEUES + 1
_AS_QUEUED: dict[str, Any] = {
    "state": TrialState.QUEUED,
    "token": "",
    "worker": "",
    "activity": "",
    "calls_so_far": None,
    "activity_exit_code": None,
}
"""The columns of a trial that returns to the queue."""


@dataclass(frozen=True)
class LaneSlot:
    """A lane's right to run one trial of a run at a time on its target."""

    run_id: int
    target_id: int
    token: str
    limited: bool
    """Whether the target limits its parallel trials."""


def _take_slot(slots: QuerySet[RunSlot] | QuerySet[TargetSlot], token: str) -> bool:
    """Take a free or expired slot; False when none is free."""
    free = slots.filter(lease_until__lt=DatabaseNow()).order_by("n")
    candidates = free
    if connection.features.has_select_for_update_skip_locked:
        candidates = free.select_for_update(skip_locked=True)
    while True:
        pk = candidates.values_list("pk", flat=True).first()
        if pk is not None and free.filter(pk=pk).update(token=token, lease_until=lease_end()) == 1:
            return True
        # A slot locked by another lane was skipped, not absent: it may be free in a moment.
        if not free.exists():
            return False


def acquire_slot(run: Run, target: Target, token: str = "") -> LaneSlot | None:
    """Take a run slot and, where the target is limited, a target slot; None when either is full."""
    slot = LaneSlot(run.pk, target.pk, token or new_token(), limited=bool(target.workers))

    def take() -> bool:
        with write_transaction():
            if not _take_slot(RunSlot.objects.filter(run=run), slot.token):
                return False
            if slot.limited and not _take_slot(TargetSlot.objects.filter(target=target), slot.token):
                RunSlot.objects.filter(run=run, token=slot.token).update(token="", lease_until=0.0)
                return False
        return True

    acquired = retry_when_lost(take, committed=lambda: True if slot_for_token(slot.token) else None)
    return slot if acquired else None


def slot_for_token(token: str) -> LaneSlot | None:
    """Return the slot under this token; None when no slot has it."""
    slot = RunSlot.objects.filter(token=token).select_related("run__target").first()
    if slot is None:
        return None
    return LaneSlot(slot.run_id, slot.run.target_id, token, limited=bool(slot.run.target.workers))


def release_slot(slot: LaneSlot) -> None:
    """Release both slots; a slot that another lane has taken is unchanged."""

    def release() -> None:
        with write_transaction():
            RunSlot.objects.filter(run=slot.run_id, token=slot.token).update(token="", lease_until=0.0)
            if slot.limited:
                TargetSlot.objects.filter(target=slot.target_id, token=slot.token).update(
                    token="", lease_until=0.0
                )

    retry_when_lost(release)


@dataclass(frozen=True)
class Claim:
    """The right to run one trial, for as long as its row has the token."""

    trial_id: int
    run_id: int
    token: str
    starts: int
    """Earlier starts of this trial."""
    scenario_version_id: int = 0
    index: int = 0


def claim_next(run_id: int, token: str) -> Claim | None:
    """Claim the run's next queued trial in one statement; None when it gets none."""
    row = statements.claim_in_one_statement(
        run_id, token, worker_name(), settings.LEASE_SECONDS, own_labels()
    )
    if row is None:
        return None
    trial_id, starts, scenario_version_id, index = row
    return Claim(trial_id, run_id, token, starts, scenario_version_id, index)


def claim_trial(run_id: int) -> Claim | None:
    """Claim the run's next queued trial; None when none is queued for this process's labels."""
    token = new_token()

    def claim() -> Claim | None:
        with one_writer():
            return claim_next(run_id, token)

    while True:
        claimed = retry_when_lost(claim, committed=lambda: held_claim(run_id, token))
        if claimed is not None:
            return claimed
        # Rows locked by others are skipped, so only an empty query means that none is queued.
        # The run's queued trials; none if this process lacks a label of its target.
        mine = LabelsWithin("run__target__labels", own_labels())
        if not retry_when_lost(Trial.objects.filter(mine, run=run_id, state=TrialState.QUEUED).exists):
            return None


def held_claim(run_id: int, token: str) -> Claim | None:
    """Return the claim under this token; None when no running trial has it."""
    held = Trial.objects.filter(run=run_id, token=token, state=TrialState.RUNNING)
    row = held.values_list("pk", "starts", "scenario_version_id", "index").first()
    if row is None:
        return None
    trial_id, starts, scenario_version_id, index = row
    return Claim(trial_id, run_id, token, starts - 1, scenario_version_id, index)


def claim_run(run_id: int) -> str | None:
    """Claim the preparation of a run, exactly once; None when another has it, or a label of its target is missing."""
    token = new_token()

    def claim() -> bool:
        with write_transaction():
            claimable = Run.objects.filter(
                labels_suffice(),
                Exists(Launch.objects.filter(is_ours(""), pk=OuterRef("launch"))),
                pk=run_id,
                state=RunState.QUEUED,
                cancel_requested=False,
            )
            claimed = claimable.update(
                state=RunState.PREPARING, token=token, lease_until=lease_end(), starts=F("starts") + 1
            )
        return claimed == 1

    def claimed() -> bool | None:
        return Run.objects.filter(pk=run_id, token=token, state=RunState.PREPARING).exists() or None

    return token if retry_when_lost(claim, committed=claimed) else None


def release_run(run_id: int, token: str) -> None:
    """Return a preparation to the queue; the start is not counted, because no worker was lost."""

    def release() -> None:
        Run.objects.filter(pk=run_id, token=token, state=RunState.PREPARING).update(
            state=RunState.QUEUED, token="", starts=F("starts") - 1
        )

    retry_when_lost(release)


def requeue_trial(claim: Claim) -> bool:
    """Return a trial to the queue because it can't be stored now, without counting its start.

    Return False when it was requeued too often or the claim is lost.
    """
    held = Trial.objects.filter(pk=claim.trial_id, token=claim.token, state=TrialState.RUNNING)

    def put() -> bool:
        with write_transaction():
            returned = held.filter(put_back__lt=MAX_REQUEUES).update(
                **_AS_QUEUED,
                started=None,
                starts=F("starts") - 1,
                put_back=F("put_back") + 1,
            )
        return returned == 1

    def was_put() -> bool | None:
        return None if held.exists() else True

    return retry_when_lost(put, committed=was_put)


def requeue_run(run_id: int, token: str) -> bool:
    """Return a preparation to the queue because it can't be stored now; False when it was requeued too often."""
    held = Run.objects.filter(pk=run_id, token=token, state=RunState.PREPARING)

    def put() -> bool:
        returned = held.filter(put_back__lt=MAX_REQUEUES).update(
            state=RunState.QUEUED, token="", starts=F("starts") - 1, put_back=F("put_back") + 1
        )
        return returned == 1

    return retry_when_lost(put, committed=lambda: None if held.exists() else True)


def make_slots(run: Run) -> None:
    """Create the run's slots, and its target's if that is limited. Safe to repeat. Requires a transaction."""
    RunSlot.objects.bulk_create(
        [RunSlot(run=run, n=n) for n in range(run.concurrency)], ignore_conflicts=True, batch_size=500
    )
    # Read again and locked, because somebody may have changed it since the run was loaded.
    follow_target(Target.objects.select_for_update(no_key=True).get(pk=run.target_id))


def remove_slots(run_id: int) -> None:
    """Delete the slots of a closed run."""
    RunSlot.objects.filter(run=run_id).delete()


def remove_slots_of_closed_runs() -> None:
    """Delete slots of closed runs that remained, such as one taken just before the close."""
    closed = Run.objects.filter(state__in=[RunState.FINISHED, RunState.CANCELLED])
    RunSlot.objects.filter(run__in=closed).delete()


def follow_target(target: Target) -> None:
    """Create or delete a target's slots to match its `workers`, and let its batches and checks follow its labels."""
    slots = target.workers or 0
    TargetSlot.objects.filter(target=target, n__gte=slots).delete()
    TargetSlot.objects.bulk_create(
        [TargetSlot(target=target, n=n) for n in range(slots)], ignore_conflicts=True
    )
    batches = Q(kind=Job.Kind.BATCH, subject__in=Run.objects.filter(target=target).values("pk"))
    checks = Q(kind=Job.Kind.CHECK, subject__in=target.checks.values("pk"))
    Job.objects.filter(batches | checks).update(labels=target.labels)


def runs_with_work() -> QuerySet[Run]:
    """Return running runs that have a queued trial for this process and are not waiting for a batch."""
    queued = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.QUEUED)
    batch = ProviderBatch.objects.filter(run=OuterRef("pk"), state=BatchState.SUBMITTED)
    mine = LabelsWithin("target__labels", own_labels())
    return Run.objects.filter(
        Exists(queued), ~Exists(batch), mine, is_ours(), state=RunState.RUNNING, cancel_requested=False
    )


def renew_claims(*, trials: list[str], slots: list[str], runs: list[str]) -> set[str]:
    """Renew the leases of these tokens; return the tokens that were lost."""
    with write_transaction():
        Trial.objects.filter(token__in=trials, state=TrialState.RUNNING).update(lease_until=lease_end())
        RunSlot.objects.filter(token__in=slots).update(lease_until=lease_end())
        TargetSlot.objects.filter(token__in=slots).update(lease_until=lease_end())
        Run.objects.filter(token__in=runs, state=RunState.PREPARING).update(lease_until=lease_end())
    held = set(
        Trial.objects.filter(token__in=trials, state=TrialState.RUNNING).values_list("token", flat=True)
    )
    held |= set(Run.objects.filter(token__in=runs, state=RunState.PREPARING).values_list("token", flat=True))
    held |= set(RunSlot.objects.filter(token__in=slots).values_list("token", flat=True))
    return {*trials, *slots, *runs} - held


def cancelled_tokens(tokens: list[str]) -> set[str]:
    """Return the trial and run tokens whose run was cancelled."""
    of_trials = Trial.objects.filter(token__in=tokens, run__cancel_requested=True).values_list(
        "token", flat=True
    )
    of_runs = Run.objects.filter(token__in=tokens, cancel_requested=True).values_list("token", flat=True)
    return set(of_trials) | set(of_runs)


def has_active_claims(launch: Launch) -> bool:
    """Return whether a trial or preparation of the launch has an unexpired lease."""
    now = DatabaseNow()
    trials = Trial.objects.filter(run__launch=launch, state=TrialState.RUNNING, lease_until__gt=now)
    return trials.exists() or launch.runs.filter(state=RunState.PREPARING, lease_until__gt=now).exists()


def expired_trials() -> QuerySet[Trial]:
    """Return trials whose worker has not renewed its lease in time."""
    return Trial.objects.filter(state=TrialState.RUNNING, lease_until__lt=DatabaseNow())


def expired_preparations() -> QuerySet[Run]:
    """Return runs whose worker has not renewed its lease while it prepared them."""
    return Run.objects.filter(state=RunState.PREPARING, lease_until__lt=DatabaseNow())


def doomed_preparations() -> list[tuple[int, str]]:
    """Return run and token of preparations to close because they lost too many workers."""
    doomed = expired_preparations().filter(starts__gte=MOST_STARTS, cancel_requested=False)
    return list(doomed.values_list("pk", "token"))


def requeue_lost() -> list[int]:
    """Requeue lost preparations and trials; return the trials to record as errors, having lost too many workers."""
    with write_transaction():
        again = Q(starts__lt=MOST_STARTS) | Q(cancel_requested=True)
        _requeue(expired_preparations().filter(again), expired_trials().filter(starts__lt=MOST_STARTS))
    return list(expired_trials().filter(starts__gte=MOST_STARTS).values_list("pk", flat=True))


def requeue_lost_of(run_id: int) -> None:
    """Requeue the lost preparation and trials of a run that is to be cancelled. Requires a transaction."""
    _requeue(expired_preparations().filter(pk=run_id), expired_trials().filter(run=run_id))


def _requeue(preparations: QuerySet[Run], trials: QuerySet[Trial]) -> None:
    preparations.update(state=RunState.QUEUED, token="")
    trials.update(**_AS_QUEUED)


def halted_runs() -> QuerySet[Run]:
    """Return cancelled runs in which work was requeued after the cancellation."""
    queued = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.QUEUED)
    waiting = Q(state=RunState.QUEUED) | (Q(state=RunState.RUNNING) & Exists(queued))
    return Run.objects.filter(waiting, cancel_requested=True)
