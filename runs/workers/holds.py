"""Launches that one process executes by itself (`--now`): no worker takes their trials while it lives.

The process renews its hold with the leases of its trials. When it is gone, a launch waits for whoever takes it over: a
worker that can have its variables, or a person who resumes or cancels its runs.
"""

from __future__ import annotations

import secrets
from functools import cache

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from runs.db.clock import DatabaseNow, database_now
from runs.models import Launch, Run
from runs.models.run import OPEN
from runs.workers.worker_names import worker_name

_HEX_BYTES = 4


@cache
def _secret(process: str) -> str:
    return secrets.token_hex(_HEX_BYTES)


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
