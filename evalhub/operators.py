"""Rights to operational data of all projects."""

from __future__ import annotations

import hmac
import ipaddress

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from evalhub.teams.access import memberships_of, of_token
from evalhub.teams.models import ApiToken

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

    These are members who are signed in, tokens of admins, the token for metrics, and whoever is on the machine of an
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
