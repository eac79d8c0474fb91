"""Whether a target can work: the page asks, a worker looks, for the web process runs no command."""

from __future__ import annotations

import socket
from typing import Any

from django.utils import timezone

from evalhub.teams.models import note
from evaluators.redaction import mask_values
from runs.models import Target, TargetCheck
from runs.providers import make_provider
from runs.providers.base import Availability, ProviderError
from runs.queue import wakeups
from runs.queue.statements import storable
from runs.settings_of_worker import containment, variables_of
from runs.targets.resolving import resolve_target


def ask_check(target: Target, *, by: Any) -> TargetCheck:
    """Return the question that waits for a worker, a new one unless one waits already.

    Older ones of the target go, except the last that was answered.
    """
    now = timezone.now()
    newest = target.checks.first()
    if newest is not None and newest.is_waiting(now=now):
        return newest
    answered = target.checks.exclude(at=None).first()
    target.checks.exclude(pk=answered.pk if answered else 0).delete()
    check = TargetCheck.objects.create(target=target, by=by if getattr(by, "pk", None) else None)
    note(target.project, by, "target.check", target.name)
    wakeups.check_target(check.pk)
    return check


def carry_out_check(check_id: int) -> None:
    """Look whether a target can work on this machine, once, and keep what was found."""
    check = TargetCheck.take(check_id, socket.gethostname()[:200])
    if check is None:
        return
    found = look(check.target)
    check.at = timezone.now()
    check.available = found.available
    check.sentence = storable(found.sentence)
    check.version = storable(found.version)[:200]
    check.save(update_fields=["at", "available", "sentence", "version"])


def look(target: Target) -> Availability:
    """Return whether the target can work here; what it is configured wrongly in is part of the answer."""
    try:
        resolved = resolve_target(target, variables_of(target.project))
        found = make_provider(resolved, containment()).check()
    except ProviderError as error:
        return Availability(available=False, sentence=str(error))
    return Availability(found.available, mask_values(found.sentence, resolved.secrets), found.version)
