"""How often somebody may try to sign in. Counted in the database, so that it holds over all processes."""

from __future__ import annotations

from datetime import datetime, timedelta

from evalhub.teams.models import SignInFailure, digest

WINDOW = timedelta(minutes=15)
MOST_PER_NAME = 5
MOST_PER_ADDRESS = 20


def _keys(address: str, name: str) -> dict[str, int]:
    return {
        digest(f"name {address} {name.casefold()}"): MOST_PER_NAME,
        digest(f"address {address}"): MOST_PER_ADDRESS,
    }


def is_blocked(address: str, name: str, *, now: datetime) -> bool:
    """Tell whether there were too many failures from an address, or for a name from it, in the last 15 minutes.

    A name alone is never blocked: otherwise anybody could lock somebody out.
    """
    recent = SignInFailure.objects.filter(at__gt=now - WINDOW)
    return any(recent.filter(key=key).count() >= most for key, most in _keys(address, name).items())


def note_failure(address: str, name: str, *, now: datetime) -> None:
    """Remember a failure, and forget those that no longer count."""
    SignInFailure.objects.filter(at__lte=now - WINDOW).delete()
    SignInFailure.objects.bulk_create([SignInFailure(key=key, at=now) for key in _keys(address, name)])
