"""The health of the database, the broker, the queue and the workers, and who may read it."""

from __future__ import annotations

import hmac
import ipaddress
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import Error, connection
from django.db.models import Min
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evalhub.broker import broker_address
from evalhub.teams.access import memberships_of, of_token
from evalhub.teams.models import ApiToken
from runs.db.disk import disk_shortage
from runs.models import Run, Trial, Worker
from runs.models.trial import TrialState
from runs.results.files.artifacts import store_problems
from runs.workers.labels import waiting_runs_by_labels

FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_FORWARDED", "HTTP_VIA")


def may_read(request: HttpRequest) -> bool:
    """Return whether the client may read metrics: with the token if one is set, else from this machine without a proxy."""
    if settings.METRICS_TOKEN:
        return hmac.compare_digest(_bearer(request).encode(), settings.METRICS_TOKEN.encode())
    if any(name in request.META for name in FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def sees_details(request: HttpRequest) -> bool:
    """Return whether the client may see versions, queue and workers.

    These are members who are signed in, tokens of admins, the token for metrics, and anyone on the machine of an
    embedded evalhub. Two queries at most.
    """
    if (settings.METRICS_TOKEN or settings.EMBEDDED) and may_read(request):
        return True
    secret = _bearer(request)
    token = ApiToken.find(secret, now=timezone.now()) if secret else None
    access = of_token(token) if token else None
    return bool(access and access.may("manage")) or bool(memberships_of(request.user))


def _bearer(request: HttpRequest) -> str:
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    return credentials if scheme.lower() == "bearer" else ""


def broker_problem() -> str:
    """Return why the broker does not answer; empty if it does."""
    # Pages don't need it, and it is large.
    import redis

    from evalhub.broker_client import connect_to_broker

    try:
        # Timeout of the broker check.
        with connect_to_broker(broker_address(), 1.0) as client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        return f"The broker does not answer: {type(error).__name__}."
    return ""


def queue_health(now: datetime) -> dict[str, Any]:
    """Return how many trials wait, and for how many seconds the longest does. Two queries."""
    waiting = Trial.objects.filter(state=TrialState.QUEUED)
    oldest = Run.objects.filter(pk__in=waiting.values("run")).aggregate(at=Min("created"))["at"]
    return {"queued": waiting.count(), "oldest_seconds": (now - oldest).total_seconds() if oldest else None}


def list_workers(now: datetime) -> list[dict[str, Any]]:
    """Return every worker with the seconds since it was last heard. One query."""
    columns = ("name", "seen", "lanes", "sandbox", "version", "problem", "free_bytes", "labels")
    rows = Worker.objects.values(*columns)
    return [{"seen_seconds": (now - row.pop("seen")).total_seconds(), **row} for row in rows]


def read_queue_state(now: datetime) -> tuple[dict[str, Any], str]:
    """Return queue and workers from the database, or nothing and the reason why it doesn't answer."""
    try:
        connection.ensure_connection()
        return {
            "queue": queue_health(now),
            "workers": list_workers(now),
            "waiting": waiting_runs_by_labels(),
        }, ""
    except Error as error:
        return {}, f"The database does not answer: {type(error).__name__}."


def read_health() -> dict[str, Any]:
    """Return how evalhub is: `ok` needs the database, the broker, room on the disks and the file store."""
    known, database = read_queue_state(timezone.now())
    broker = broker_problem()
    # Why trials can't be stored, as an online worker reports or as this process sees.
    lately = Worker.HEARD_WITHIN.total_seconds()
    problems = (each["problem"] for each in known.get("workers", []) if each["seen_seconds"] <= lately)
    disk = next(filter(None, problems), "") or disk_shortage()
    return {
        "ok": not database and not broker and not disk,
        "version": settings.VERSION,
        "database": database or "ok",
        "broker": broker or "ok",
        "disk": disk or "ok",
        "sandbox": settings.SANDBOX,
        **known,
    }


def visible_state(request: HttpRequest) -> dict[str, Any]:
    """Return the part of `read_health` that the client may see: without rights only the status."""
    full_state = read_health()
    # Without a database no client can be identified.
    with suppress(Error):
        if full_state["database"] == "ok" and sees_details(request):
            # Strangers never make a web process ask the store, which may be slow or away.
            return {**full_state, "store": " ".join(store_problems()) or "ok"}
    return {name: full_state[name] for name in ("ok", "database", "broker", "disk")}


@never_cache
@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while pages can be served, 503 without the database."""
    answer = visible_state(request)
    return JsonResponse(answer, status=200 if answer["database"] == "ok" else 503)
