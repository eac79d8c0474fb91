"""Store that a worker has something to do, in the transaction of what asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from runs.db.clock import DatabaseNow
from runs.models import Job, Launch


def request_job(
    kind: Job.Kind,
    subject: int,
    *,
    labels: Sequence[str] = (),
    launch: Launch | None = None,
    due: object | None = None,
    expires: datetime | None = None,
) -> Job:
    """Store the job of a subject, or make the one that it has due then, and return it. Requires a transaction.

    A worker that is at it notices that it became due again, and doesn't end it.
    """
    due = DatabaseNow() if due is None else due
    values = {"labels": list(labels), "launch": launch, "due": due, "expires": expires}
    stored = Job.objects.filter(kind=kind, subject=subject)
    if not stored.update(due=due):
        _, is_new = Job.objects.get_or_create(kind=kind, subject=subject, defaults=values)
        if not is_new:
            stored.update(due=due)
    return stored.get()
