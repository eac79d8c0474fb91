"""Whether an expired lease means that its worker is lost.

After a database was away, every lease has expired: workers that live renew theirs first. The gap shows in the database, so it
doesn't matter which process looks at leases next.
"""

from __future__ import annotations

from django.conf import settings

from runs.db.clock import database_now
from runs.db.transactions import write_transaction
from runs.models import LeaseCheck

GAP_SECONDS = 12.0
"""Beat asks for a check every 5 seconds; a longer gap than this means that the database, the broker or beat was away."""
RENEWING_SECONDS = 10.0
"""Seconds after a gap in which workers connect again and renew their leases, at most a lease's length."""
_ROW = 1


def may_take_expired() -> bool:
    """Note that leases are checked now; return False shortly after nobody checked them for a while."""
    with write_transaction():
        now = database_now()
        row, _ = LeaseCheck.objects.select_for_update().get_or_create(pk=_ROW, defaults={"checked": now})
        # Asked again: the row may have been locked.
        now = database_now()
        if now - row.checked > GAP_SECONDS:
            row.resumed = now
        row.checked = now
        row.save()
    return now - row.resumed >= min(RENEWING_SECONDS, settings.LEASE_SECONDS)
