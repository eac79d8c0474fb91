"""Whether a target can work: the page asks, a worker looks, for the web process runs no command."""

from __future__ import annotations

import socket
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.teams import audit
from evaluators.redaction import mask_values
from runs.errors import ProviderError
from runs.models import Target, TargetCheck
from runs.providers import make_provider
from runs.providers.base import Availability
from runs.queue import wakeups
from runs.queue.statements import storable
from runs.targets.resolve import resolve_target
from runs.worker_settings import containment, variables_of


def ask_check(target: Target, *, by: User | None) -> TargetCheck:
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
    audit.record(target.project, by, "target.check", target.name)
    wakeups.check_target(check.pk)
    return check


def run_check(check_id: int) -> None:
    """Look whether a target can work on this machine, once, and keep what was found."""
    check = TargetCheck.take(check_id, _here())
    if check is None:
        return
    answer = _answer(look(check.target))
    for name, value in answer.items():
        setattr(check, name, value)
    check.save(update_fields=list(answer))


def keep_found(target: Target, found: Availability) -> None:
    """Keep what the preparation of a run found of its target, unless somebody waits for an answer of a worker.

    It takes the place of the last answer. The sentence has to be free of secrets.
    """
    newest = target.checks.first()
    if newest is not None and newest.is_waiting(now=timezone.now()):
        return
    kept = TargetCheck.objects.create(target=target, worker=_here(), **_answer(found))
    target.checks.filter(pk__lt=kept.pk).delete()


def _here() -> str:
    return socket.gethostname()[:200]


def _answer(found: Availability) -> dict[str, Any]:
    """Return the columns of a check that was answered just now."""
    return {
        "at": timezone.now(),
        "available": found.available,
        "sentence": storable(found.sentence),
        "version": storable(found.version)[:200],
    }


def look(target: Target) -> Availability:
    """Return whether the target can work here; what it is configured wrongly in is part of the answer."""
    try:
        resolved = resolve_target(target, variables_of(target.project))
        found = make_provider(resolved, containment().for_target(resolved.options)).check()
    except ProviderError as error:
        return Availability(available=False, sentence=str(error))
    return Availability(found.available, mask_values(found.sentence, resolved.secrets), found.version)
