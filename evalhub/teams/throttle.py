"""Limits password guesses: each is counted first, in the database, for all processes.

An account alone is never delayed: otherwise strangers could lock its owner out.
"""

from __future__ import annotations

import ipaddress
import math
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from evalhub.teams.models import PasswordGuesses, hash_token

FREE_PER_PAIR = 5
"""Wrong guesses for one account from one address without a delay."""
FREE_PER_ADDRESS = 20
"""The same for all accounts together."""
FIRST_DELAY = timedelta(seconds=30)
LONGEST_DELAY = timedelta(hours=1)
FORGOTTEN_AFTER = timedelta(hours=24)
_MOST_REMOVED = 100


def admit(address: str, name: str, *, now: datetime) -> int:
    """Count a guess. Returns 0 if it may be checked, else the seconds to wait.

    Concurrent guesses are serialized, so each is counted before it is checked.
    """
    old = PasswordGuesses.objects.filter(last__lt=now - FORGOTTEN_AFTER)
    with transaction.atomic():
        keys = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_MOST_REMOVED])
        if keys:
            PasswordGuesses.objects.filter(pk__in=keys).delete()
    free = _free(address, name)
    with transaction.atomic():
        PasswordGuesses.objects.bulk_create(
            [PasswordGuesses(key=key, last=now) for key in sorted(free)], ignore_conflicts=True
        )
        # In one order, or two guesses could wait for each other.
        rows = list(PasswordGuesses.objects.select_for_update().filter(key__in=free).order_by("key"))
        wait = max((_wait(row, free[row.key], now) for row in rows), default=0)
        if wait:
            return wait
        for row in rows:
            count = 1 if now - row.last > FORGOTTEN_AFTER else row.count + 1
            PasswordGuesses.objects.filter(pk=row.pk).update(count=count, last=now)
    return 0


def forget(address: str, name: str) -> None:
    """Take back the guess that was right, and those for the same account from this address before it."""
    pair, whole = _free(address, name)
    PasswordGuesses.objects.filter(key=pair).delete()
    PasswordGuesses.objects.filter(key=whole, count__gt=0).update(count=F("count") - 1)


def _free(address: str, name: str) -> dict[str, int]:
    """Return how many guesses are free by the keys of the pair and of the address, in this order."""
    where = _network(address)
    return {
        hash_token(f"pair {where} {name.casefold()}"): FREE_PER_PAIR,
        hash_token(f"address {where}"): FREE_PER_ADDRESS,
    }


def _network(address: str) -> str:
    """Return the address; for IPv6 its /64, because one client usually has the whole block."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else str(parsed)


def _wait(row: PasswordGuesses, free: int, now: datetime) -> int:
    """Return the seconds until the next guess: 30 s after the last free one, doubled by each further one."""
    if row.count < free or now - row.last > FORGOTTEN_AFTER:
        return 0
    # Sixteen doublings are past the longest delay.
    doublings = min(row.count - free, 16)
    delay = min(FIRST_DELAY * (1 << doublings), LONGEST_DELAY)
    return max(0, math.ceil((row.last + delay - now).total_seconds()))
